"""Single commands in a replica: a prompt, and what came out of them."""

from typing import ClassVar
from uuid import UUID

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widget import Widget
from textual.widgets import Input, Static

from quarterdeck.store.deck import Deck
from quarterdeck.transcript.clean import clean_output
from quarterdeck.tui.actions import Where, which
from quarterdeck.tui.copying import copy_text
from quarterdeck.tui.panes.exec_view import ExecView
from quarterdeck.tui.panes.exec_words import nothing_yet_words, resting
from quarterdeck.tui.panes.pane_keys import PaneKeys, pane_bindings
from quarterdeck.tui.panes.tabs import TabPane
from quarterdeck.tui.type_ahead import release_keys
from quarterdeck.tui.widgets.placed import Placed


class ExecPrompt(Input, PaneKeys, Placed):
    """One line; up and down bring back what was run before."""

    DEFAULT_CSS = """
    ExecPrompt {
        border: round $panel-lighten-2;
        height: 3;
        background: $background;
        border-title-color: $text-muted;
        border-subtitle-color: $text-muted;
        &:focus { border: round $border; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [*pane_bindings(Where.EXEC)]

    def __init__(self, history: "list[str]") -> None:
        super().__init__()
        self.cursor_blink = False
        self.border_title = "Command"
        self._history = history
        self._back = 0
        self._typed = ""

    @property
    def place(self) -> Where:
        """Part of `Placed`."""
        return Where.EXEC

    def set_history(self, history: "list[str]") -> None:
        """Commands that were run, the last at the end."""
        self._history = history
        self._back = 0

    def put(self, text: str) -> None:
        """Shows a text, with the cursor behind it."""
        self.value = text
        self.cursor_position = len(text)

    async def _on_key(self, event: events.Key) -> None:
        match which(Where.EXEC, event.key):
            case "exec.run":
                self._stop(event)
                await self.action_submit()
            case "exec.earlier" | "exec.later" as meant:
                self._stop(event)
                self._recall(1 if meant == "exec.earlier" else -1)
            case "" if event.key == "enter":
                self._stop(event)
            case _:
                await super()._on_key(event)

    def _stop(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()

    def _recall(self, step: int) -> None:
        if not self._back:
            self._typed = self.value
        self._back = max(0, min(len(self._history), self._back + step))
        self.put(self._history[-self._back] if self._back else self._typed)


class ExecPane(TabPane):
    """Runs what is typed; the runs go on when another tab or replica is looked at."""

    DEFAULT_CSS = """
    ExecPane {
        & ExecView { height: 1fr; }
        & #exec-said { height: auto; max-height: 2; padding: 0 1; color: $text-warning; display: none; }
    }
    """

    def __init__(self, deck: Deck, replica_id: UUID) -> None:
        super().__init__(deck, replica_id)
        self._runs = deck.exec_runs
        self._said = ""

    def compose(self) -> ComposeResult:
        yield ExecView()
        yield Static(id="exec-said", markup=False)
        yield ExecPrompt(self._runs.history)

    @property
    def view(self) -> ExecView:
        return self.query_one(ExecView)

    @property
    def prompt(self) -> ExecPrompt:
        return self.query_one(ExecPrompt)

    @property
    def place(self) -> Where:
        """Part of `Placed`."""
        return Where.EXEC_OUTPUT

    @property
    def keys_target(self) -> Widget:
        """Part of `TabPane`."""
        return self.prompt

    def on_mount(self) -> None:
        self.view.empty = nothing_yet_words()
        self.show_state()

    def shown(self) -> None:
        """Part of `TabPane`."""
        self.show_state()

    def show_state(self) -> None:
        """Part of `TabPane`."""
        state = self._deck.replicas.get(self.replica_id)
        if state is None or not self.is_mounted:
            return
        self.view.show(self._runs.of(self.replica_id))
        if state.active:
            self._said = ""
        words = self._said
        said = self.query_one("#exec-said", Static)
        said.display = bool(words)
        said.update(words)
        self.prompt.border_subtitle = "not active" if resting(state) else ""

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        command = event.value.strip()
        state = self._deck.replicas.get(self.replica_id)
        if not command or state is None:
            return
        self._said = resting(state)
        if not self._said:
            self._runs.start(self.replica_id, command)
            self.prompt.put("")
            self.prompt.set_history(self._runs.history)
        self.show_state()

    def action_interrupt(self) -> None:
        chosen = self.view.chosen if self.view.has_focus else None
        running = self._runs.running(self.replica_id)
        run = chosen if chosen is not None and chosen.running else next(reversed(running), None)
        if run is not None:
            self._runs.interrupt(run)

    def action_to_output(self) -> None:
        self.screen.set_focus(self.view)
        release_keys(self)

    def action_to_prompt(self) -> None:
        self.screen.set_focus(self.prompt)
        release_keys(self)

    def action_again(self) -> None:
        if (run := self.view.chosen) is not None:
            self.prompt.put(run.command)
            self.action_to_prompt()

    def action_copy(self) -> None:
        run = self.view.chosen
        if run is not None and run.response is not None and run.response.output:
            copy_text(self, clean_output(run.response.output))

    def action_clear(self) -> None:
        self._runs.forget(self.replica_id)
        self.show_state()

    def action_fold(self) -> None:
        self.view.fold()

    def action_run(self, step: int) -> None:
        self.view.go(step)

    def action_move(self, rows: int) -> None:
        self.view.scroll_by(rows)

    def action_page(self, direction: int) -> None:
        self.view.scroll_by(direction * max(1, self.view.size.height - 2))

    def action_edge(self, end: bool) -> None:
        self.view.scroll_by(10**9 if end else -(10**9))
