"""Asks before a run is begun by hand, with what it may be told."""

from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Button, Input, Label, Static, TextArea

from quarterdeck.client.errors import ClientError
from quarterdeck.store.automation_states import AutomationState
from quarterdeck.store.automation_triggering import FORM, Wrong, refused, trigger_of
from quarterdeck.store.deck import Deck
from quarterdeck.tui.actions import Where
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.forms.message_field import MessageField
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.screens.dialog import Dialog
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import release_keys
from quarterdeck.wire.automations import Triggered

OFF = "It is switched off: its schedule and events start nothing, a run by hand does."


class RunDialog(SettledLayout[Triggered | None], Dialog[Triggered | None]):
    """Dismissed with the run that began, or None. Enter begins one without more."""

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
            border: round $primary;
        }
        & Label { color: $text-muted; }
        & TextArea { height: 6; border: round $panel-lighten-2; padding: 0 1; }
        & TextArea:focus { border: round $border; }
        & .error { color: $text-error; height: auto; display: none; }
        & #run-buttons { height: auto; align-horizontal: right; margin-top: 1; }
        & Button { margin-left: 2; }
    }
    """
    place: ClassVar[Where] = Where.FORM
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel", id="form.close"),
        Binding("ctrl+s", "submit", "Run", id="form.save"),
        Binding("tab", "app.focus_next", "Next field", show=False, priority=True, id="form.next"),
        Binding(
            "shift+tab",
            "app.focus_previous",
            "Field before",
            show=False,
            priority=True,
            id="form.before",
        ),
    ]

    def __init__(self, deck: Deck, state: AutomationState) -> None:
        super().__init__()
        self._deck = deck
        self._state = state
        self._busy = False

    def compose(self) -> ComposeResult:
        box = VerticalScroll()
        box.border_title = f"Run {one_line(self._state.name)} now"
        box.can_focus = False
        with box:
            if not self._state.record.enabled:
                yield Static(OFF, markup=False)
            yield Label("Payload: JSON that the agent is told (may be empty)")
            payload = MessageField("", id="payload")
            payload.cursor_blink = False
            yield payload
            yield Static(id="payload-error", classes="error", markup=False)
            yield Label("Pull request that it is about: REPOSITORY#NUMBER (may be empty)")
            about = Input(id="pr", placeholder="shop#12", compact=True)
            about.cursor_blink = False
            yield about
            yield Static(id="pr-error", classes="error", markup=False)
            yield Static(id="form-error", classes="error", markup=False)
            with Horizontal(id="run-buttons"):
                yield Button(keyed("Cancel ({form.close})"), id="cancel", compact=True)
                yield Button(_run_words(), id="begin", variant="primary", compact=True)

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#begin", Button))
        release_keys(self)

    @on(Input.Submitted)
    @on(Button.Pressed, "#begin")
    def action_submit(self) -> None:
        if not self._busy:
            self._begin()

    @work(exclusive=True)
    async def _begin(self) -> None:
        for static in self.query(".error").results(Static):
            static.display = False
        typed = self.query_one("#payload", TextArea).text
        body = trigger_of(typed, self.query_one("#pr", Input).value)
        if isinstance(body, Wrong):
            self._say(body)
            return
        self._set_busy(True)
        try:
            begun = await self._deck.automations.commands.start(self._state.id, body)
        except ClientError as error:
            self._say(refused(error))
        else:
            self.dismiss(begun)
        finally:
            self._set_busy(False)

    def _set_busy(self, busy: bool) -> None:
        self._busy = busy
        if self.is_mounted:
            self.query_one("#begin", Button).label = "Beginning …" if busy else _run_words()

    def _say(self, wrong: Wrong) -> None:
        beside = self.query_one(f"#{wrong.field}-error", Static)
        beside.update(one_line(wrong.text))
        beside.display = True
        if wrong.field == FORM:
            self.call_after_refresh(beside.scroll_visible, animate=False)
        else:
            self.set_focus(self.query_one(f"#{wrong.field}"))

    @on(Button.Pressed, "#cancel")
    def action_cancel(self) -> None:
        self.dismiss(None)


def _run_words() -> str:
    return keyed("Run ({form.save})")
