"""One run, and the dialog that starts one."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, ClassVar, cast
from uuid import UUID

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Button, Input, Label, Static, TextArea

from quarterdeck.client.errors import ClientError, NotFoundError
from quarterdeck.store.app_state import AppState
from quarterdeck.store.automation_draft import Wrong, composed_prompt, refused, trigger_of
from quarterdeck.store.automation_state import AutomationState, under_way
from quarterdeck.store.losses import work_words
from quarterdeck.store.signals import AutomationsChanged, Change, ListChanged
from quarterdeck.transcript.text import name_line, one_line
from quarterdeck.tui.actions import KeyContext, bindings, brief_keys, keyed
from quarterdeck.tui.actions.pages import APPROVE, CANCEL, OF_A_RUN, RETRY
from quarterdeck.tui.automations.facts import StoryView
from quarterdeck.tui.automations.runs import READING, RunStory, payload_text, story_lines
from quarterdeck.tui.clipboard import copy_text
from quarterdeck.tui.forms.create_fields import MessageField
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.kit.dialogs import Dialog
from quarterdeck.tui.screens.page import PageScreen
from quarterdeck.tui.widgets.status_line import KeyLine
from quarterdeck.wire.automation_runs import Execution, ExecutionStatus, Triggered

NO_PLACE = "waits for its turn"
NOT_APPROVED = "waits for approval"
APPROVING = (
    "The run starts at the pushed commit {commit}, with the variables of the environment. Review "
    "the changes of {author} first."
)
CANCELING = "Stops the agent and marks the run as failed. The replica is kept."
BEING_MADE = "starting"
GONE = "gone"


class RunSteps(PageScreen):
    """The base of the screens that show runs."""

    @property
    def chosen_run(self) -> Execution | None:
        """The run that actions apply to."""
        raise NotImplementedError

    def replica_of(self, run: Execution) -> str:
        """Return the name of a run's replica, or what happened to it."""
        if run.workspace_id is None:
            waits = NOT_APPROVED if run.awaiting_approval else NO_PLACE
            return waits if run.completed_at is None else ""
        state = self._app_state.replicas.get(run.workspace_id)
        if state is not None:
            return state.name
        return BEING_MADE if under_way(run) else GONE

    def action_to_replica(self) -> None:
        run = self.chosen_run
        if run is None:
            return
        if run.workspace_id in self._app_state.replicas:
            self.dismiss(run.workspace_id)
        elif run.workspace_id is None:
            self.tell("information", "No replica", "The run has no replica.")
        else:
            self.tell("information", "No replica", "Deleted; the run stays in the history.")

    def show_keys(self) -> None:
        """Show the keys of the focused part that apply to the chosen run."""
        useful = set(_useful(self.chosen_run))
        without = {action.id for action in OF_A_RUN if action.id not in useful}
        self.query_one(KeyLine).show(brief_keys(self.where, without) if self.is_active else ())

    def action_retry(self) -> None:
        run = self.chosen_run
        if run is None:
            return
        if run.status != ExecutionStatus.FAILED:
            self.tell("information", "Retry", "Only a run that failed can be run again.")
            return
        retry = self._app_state.automations.commands.retry(run.automation_id, run.id)
        self.carry_out("Retry", retry, "Retrying in a new replica.")

    def action_approve(self) -> None:
        run = self.chosen_run
        if run is None:
            return
        if not run.awaiting_approval:
            self.tell("information", "Approve", "The run does not wait for approval.")
            return
        about = pull_request_of(run)
        consequence = APPROVING.format(
            commit=about.get("commit") or "the newest", author=about.get("author") or "the author"
        )
        title = about.get("title")
        question = f"Approve {one_line(title)}?" if title else "Approve the run?"
        approve = self._app_state.automations.commands.approve
        self._ask_first(
            question, consequence, "Approve", lambda: approve(run.automation_id, run.id)
        )

    def action_cancel_run(self) -> None:
        run = self.chosen_run
        if run is None:
            return
        if not under_way(run):
            self.tell("information", "Cancel", "The run has ended.")
            return
        cancel = self._app_state.automations.commands.cancel
        self._ask_first(
            "Cancel the run?", CANCELING, "Cancel", lambda: cancel(run.automation_id, run.id)
        )

    @work
    async def _ask_first(
        self, question: str, consequence: str, verb: str, request: Callable[[], Awaitable[object]]
    ) -> None:
        from quarterdeck.tui.kit.dialogs import ConfirmScreen

        if await self.app.push_screen_wait(ConfirmScreen(question, consequence, verb)):
            self.carry_out(verb, request())

    @work
    async def carry_out(self, verb: str, request: Awaitable[object], done: str = "") -> None:
        """Carry out a request; a refusal is one notice that says what to do."""
        try:
            await request
        except ClientError as error:
            self.tell("error", f"{verb}: {error.title}", f"{error} {error.next_step}")
        else:
            if done:
                self.tell("information", verb, done)


def _useful(run: Execution | None) -> Iterator[str]:
    """Yield the ids of the actions that apply to a run."""
    if run is None:
        return
    if run.awaiting_approval:
        yield APPROVE.id
    if under_way(run):
        yield CANCEL.id
    if run.status == ExecutionStatus.FAILED:
        yield RETRY.id


def pull_request_of(run: Execution) -> dict[str, str]:
    """Return author, title and commit of the run's pull request, as far as known."""
    payload = _object(run.trigger_payload)
    for_a = _object(payload.get("pull_request"))
    for_b = _object(payload.get("object_attributes"))
    found = {
        "author": _object(for_a.get("user")).get("login")
        or _object(payload.get("user")).get("name"),
        "title": for_a.get("title") or for_b.get("title"),
        "commit": run.head_sha
        or _object(for_a.get("head")).get("sha")
        or _object(for_b.get("last_commit")).get("id"),
    }
    return {name: one_line(text) for name, text in found.items() if isinstance(text, str)}


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


NOT_YET = "Not available until the replica exists."
NOT_FOUND = "Not in the replica's history."
NO_REPLICA = "The replica was deleted."


class RunScreen(RunSteps):
    """Pushed over the automations; dismissed with the replica to go to, if any."""

    DEFAULT_CSS = """
    RunScreen {
        & #run-title { height: 1; background: $boost; padding: 0 1; text-style: bold; }
        & StoryView { height: 1fr; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyContext.AUTOMATION_RUN)]
    AUTO_FOCUS = "StoryView"
    home = KeyContext.AUTOMATION_RUN

    def __init__(self, app_state: AppState, automation_id: UUID, run_id: UUID) -> None:
        super().__init__(app_state)
        self._automation_id = automation_id
        self._run_id = run_id
        self._prompt: str | None = None
        self._prompt_note = READING
        self._prompt_run_id: UUID | None = None

    def body(self) -> ComposeResult:
        yield Static(id="run-title", markup=False)
        yield StoryView(id="story")

    def on_mount(self) -> None:
        self._show()
        self._read()

    @property
    def _state(self) -> AutomationState | None:
        return self._app_state.automations.states.get(self._automation_id)

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
            self.query_one("#run-title", Static).update("This run was deleted.")
            return
        self.query_one("#run-title", Static).update(f"A run of {name_line(state.name)}")
        replica = self.replica_of(run)
        known = self._app_state.replicas.get(run.workspace_id) if run.workspace_id else None
        if known is not None and run.completed_at is not None and (words := work_words([known])):
            replica = f"{replica} ({words})"
        story = RunStory(run, replica, self._prompt, self._prompt_note)
        self.query_one(StoryView).show(story_lines(story))
        self.show_keys()
        if run.workspace_id != self._prompt_run_id:
            self._read()  # the run has its replica by now, and so its prompt

    @work(exclusive=True)
    async def _read(self) -> None:
        commands = self._app_state.automations.commands
        try:
            run = await commands.read_run(self._automation_id, self._run_id)
            self._prompt_run_id = run.workspace_id
            replica = self._app_state.replicas.get(run.workspace_id) if run.workspace_id else None
            if replica is not None and run.completed_at is not None:
                await self._app_state.commands.read_resting([replica])  # for what was not pushed
            self._prompt = await composed_prompt(self._app_state.client, run)
            self._prompt_note = (
                NOT_YET if run.workspace_id is None and under_way(run) else NOT_FOUND
            )
        except NotFoundError:
            self._prompt_note = NO_REPLICA
        except ClientError as error:
            self._prompt_note = f"Could not be read: {error} {error.next_step}"
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
            self.tell("information", "Payload", "No payload.")

    def action_copy_prompt(self) -> None:
        if self._prompt:
            copy_text(self, self._prompt)
        else:
            self.tell("information", "Prompt", self._prompt_note)


OFF = "Off: its schedule and events start nothing; manual runs do."


class RunDialog(Dialog[Triggered | None], SettledLayout[Triggered | None]):
    """Dismissed with the run that was started, or None; starts with the payload."""

    DEFAULT_CSS = """
    RunDialog {
        align: center middle;
        & > VerticalScroll {
            width: 72;
            max-width: 98%;
            height: auto;
            max-height: 98%;
            padding: 0 2;
            background: $surface;
            border: round $border;
        }
        & Label { color: $text-muted; }
        & TextArea { height: 6; border: round $panel-lighten-2; padding: 0 1; }
        & TextArea:focus { border: round $border; }
        & .error { color: $text-error; height: auto; display: none; }
        & #run-buttons { height: auto; align-horizontal: right; margin-top: 1; }
        & Button { margin-left: 2; }
    }
    """
    place: ClassVar[KeyContext] = KeyContext.FORM
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel", id="form.close"),
        Binding("ctrl+s", "submit", "Run", id="form.save"),
        Binding("tab", "app.focus_next", "Next field", show=False, priority=True, id="form.next"),
        Binding(
            "shift+tab",
            "app.focus_previous",
            "Previous field",
            show=False,
            priority=True,
            id="form.before",
        ),
    ]

    def __init__(self, app_state: AppState, state: AutomationState) -> None:
        super().__init__()
        self._app_state = app_state
        self._state = state
        self._busy = False

    def compose(self) -> ComposeResult:
        box = VerticalScroll()
        box.border_title = Text(f"Run {name_line(self._state.name)} now")
        box.can_focus = False
        with box:
            if not self._state.record.enabled:
                yield Static(OFF, markup=False)
            yield Label("Payload (JSON, optional)")
            payload = MessageField("", id="payload")
            payload.cursor_blink = False
            yield payload
            yield Static(id="payload-error", classes="error", markup=False)
            yield Label("Pull request (REPOSITORY#NUMBER, optional)")
            about = Input(id="pr", placeholder="shop#12", compact=True)
            about.cursor_blink = False
            yield about
            yield Static(id="pr-error", classes="error", markup=False)
            yield Static(id="form-error", classes="error", markup=False)
            with Horizontal(id="run-buttons"):
                yield Button(keyed("Cancel ({form.close})"), id="cancel", compact=True)
                yield Button(_run_words(), id="begin", variant="primary", compact=True)

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#payload", MessageField))

    @on(Input.Submitted)
    @on(Button.Pressed, "#begin")
    def action_submit(self) -> None:
        if not self._busy:
            self._start_run()

    @work(exclusive=True)
    async def _start_run(self) -> None:
        for static in self.query(".error").results(Static):
            static.display = False
        typed = self.query_one("#payload", TextArea).text
        body = trigger_of(typed, self.query_one("#pr", Input).value)
        if isinstance(body, Wrong):
            self.show_error(body.field, body.text)
            return
        self._set_busy(True)
        try:
            started = await self._app_state.automations.commands.start(self._state.id, body)
        except ClientError as error:
            wrong = refused(error)
            self.show_error(wrong.field, wrong.text)
        else:
            self.dismiss(started)
        finally:
            self._set_busy(False)

    def _set_busy(self, busy: bool) -> None:
        self._busy = busy
        if self.is_mounted:
            self.query_one("#begin", Button).label = "Starting …" if busy else _run_words()

    @on(Button.Pressed, "#cancel")
    def action_cancel(self) -> None:
        self.dismiss(None)


def _run_words() -> str:
    return keyed("Run ({form.save})")
