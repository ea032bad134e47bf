"""One run: how it went, its payload, its prompt, and the way to its replica."""

from typing import ClassVar
from uuid import UUID

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from quarterdeck.client.errors import ClientError, NotFound
from quarterdeck.store.automation_prompts import composed_prompt
from quarterdeck.store.automation_states import AutomationState, under_way
from quarterdeck.store.changes import AutomationsChanged, Change, ListChanged
from quarterdeck.store.deck import Deck
from quarterdeck.tui.actions import Where, bindings
from quarterdeck.tui.automations.facts_view import StoryView
from quarterdeck.tui.automations.run_facts import READING, RunStory, payload_text, story_lines
from quarterdeck.tui.automations.run_steps import RunSteps
from quarterdeck.tui.copying import copy_text
from quarterdeck.tui.text import one_line
from quarterdeck.wire.automations import Execution

NOT_YET = "It is composed when the run has its replica."
NOT_FOUND = "It is not in the replica's history."
NO_REPLICA = "The replica is gone, and what was said in it."


class RunScreen(RunSteps):
    """Pushed over the automations; dismissed with the replica to go to, if any."""

    DEFAULT_CSS = """
    RunScreen {
        & #run-title { height: 1; background: $boost; padding: 0 1; text-style: bold; }
        & StoryView { height: 1fr; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Where.AUTOMATION_RUN)]
    AUTO_FOCUS = "StoryView"
    home = Where.AUTOMATION_RUN

    def __init__(self, deck: Deck, automation_id: UUID, run_id: UUID) -> None:
        super().__init__(deck)
        self._automation_id = automation_id
        self._run_id = run_id
        self._prompt: str | None = None
        self._said = READING
        self._asked_with: UUID | None = None

    def body(self) -> ComposeResult:
        yield Static(id="run-title", markup=False)
        yield StoryView(id="story")

    def on_mount(self) -> None:
        self._show()
        self._read()

    @property
    def _state(self) -> AutomationState | None:
        return self._deck.automations.states.get(self._automation_id)

    @property
    def chosen_run(self) -> Execution | None:
        state = self._state
        return state.history.find(self._run_id) if state and state.history else None

    def take(self, change: Change) -> None:
        mine = isinstance(change, AutomationsChanged) and change.automation_id in (
            None,
            self._automation_id,
        )
        if mine or isinstance(change, ListChanged):
            self.call_after_refresh(self._show)

    def _show(self) -> None:
        state, run = self._state, self.chosen_run
        if not self.is_attached:
            return
        if state is None or run is None:
            self.query_one("#run-title", Static).update("This run is no more.")
            return
        self.query_one("#run-title", Static).update(f"A run of {one_line(state.name)}")
        story = RunStory(run, self.replica_of(run), self._prompt, self._said)
        self.query_one(StoryView).show(story_lines(story))
        if run.workspace_id != self._asked_with:
            self._read()  # it has its replica by now, and so its prompt

    @work(exclusive=True)
    async def _read(self) -> None:
        commands = self._deck.automations.commands
        try:
            run = await commands.read_run(self._automation_id, self._run_id)
            self._asked_with = run.workspace_id
            self._prompt = await composed_prompt(self._deck.client, run)
            self._said = NOT_YET if run.workspace_id is None and under_way(run) else NOT_FOUND
        except NotFound:
            self._said = NO_REPLICA
        except ClientError as error:
            self._said = f"It could not be read: {error} {error.next_step}"
        self._show()

    def action_reconnect(self) -> None:
        super().action_reconnect()
        self._read()

    def action_copy_payload(self) -> None:
        run = self.chosen_run
        text = payload_text(run) if run is not None else ""
        if text:
            copy_text(self, text)
        else:
            self.tell("information", "Payload", "The run has none.")

    def action_copy_prompt(self) -> None:
        if self._prompt:
            copy_text(self, self._prompt)
        else:
            self.tell("information", "Prompt", self._said)
