"""The text of a `.env` file, and a preview of what it would change."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Static, TextArea

from quarterdeck.client.errors import ClientError
from quarterdeck.store.environment_paste import Effect, VariableChange, counts_text, parse, plan
from quarterdeck.store.environments import InheritedPart
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, eager_bindings
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.environments.rows import HIDDEN, Table, TableRow
from quarterdeck.tui.environments.section import Parts
from quarterdeck.tui.forms.kit import settled
from quarterdeck.tui.forms.kit.controls import Editor
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.kit.dialogs import Dialog, Unsaved, UnsavedScreen
from quarterdeck.tui.textual_ext.type_ahead import hold_keys
from quarterdeck.wire.environment_parts import (
    ChangeVariable,
    CreateVariable,
    EnvironmentVariable,
)
from quarterdeck.wire.environments import Environment

SIGNS = {Effect.ADD: "+ add", Effect.CHANGE: "~ change", Effect.SAME: "= same", Effect.WRONG: "✗"}


class PasteScreen(SettledLayout[object], Dialog[object]):
    """Dismissed with True when something was imported, else with None.

    What the service refuses stays in the list with the reason, and the text is kept.
    """

    DEFAULT_CSS = """
    PasteScreen {
        align: center middle;
        & > Vertical {
            width: 90;
            max-width: 98%;
            height: 94%;
            padding: 0 2;
            background: $surface;
            border: round $primary;
        }
        & Editor { border: round $panel-lighten-2; padding: 0 1; border-title-color: $text-muted; }
        & Editor:focus { border: round $border; }
        & Table { height: 1fr; }
        & #sum { height: auto; color: $text-muted; }
        & #sum.trouble { color: $text-error; }
        & #foot { height: 1; }
        & #keys { width: 1fr; color: $text-muted; }
        & Button { margin-left: 2; min-width: 10; }
    }
    """
    place: ClassVar[KeyContext] = KeyContext.FORM
    BINDINGS: ClassVar[list[BindingType]] = [
        one for one in eager_bindings(KeyContext.FORM) if one.id != "form.editor"
    ]

    def __init__(
        self,
        parts: Parts,
        environment: Environment,
        known: Sequence[InheritedPart[EnvironmentVariable]],
    ) -> None:
        super().__init__()
        self._parts = parts
        self._environment = environment
        self._known = list(known)
        self._changes: list[VariableChange] = []
        self._refused: dict[str, str] = {}
        self._shown = False
        self._busy = False
        self._imported = False

    def compose(self) -> ComposeResult:
        box = Vertical()
        box.border_title = Text(f"Paste a .env file into {one_line(self._environment.name)}")
        with box:
            editor = Editor("", secret=True, rows=6)
            editor.border_title = ".env contents (masked)"
            yield editor
            yield Static("Nothing changes until you save.", id="sum", markup=False)
            yield Table()
            with Horizontal(id="foot"):
                keys = keyed("{form.save} save · {form.reveal} show · {form.close} close")
                yield Static(keys, id="keys", markup=False)
                yield Button("Cancel", id="cancel", compact=True)
                yield Button("Save", id="save", variant="primary", compact=True)

    def on_mount(self) -> None:
        self.query_one(Editor).focus()

    @on(TextArea.Changed)
    def _plan(self) -> None:
        self._refused.clear()
        self._preview()

    def _preview(self) -> None:
        bound = self._environment.source_environment_id is not None
        self._changes = plan(parse(self.query_one(Editor).text), self._known, bound=bound)
        self.query_one(Table).show_table(map(self._row, self._changes), 8, 0.4)
        self._show_message(counts_text(self._changes) or "Nothing changes until you save.")

    def _row(self, change: VariableChange) -> TableRow:
        refused = self._refused.get(change.key)
        if refused or change.effect is Effect.WRONG:
            return TableRow("", (SIGNS[Effect.WRONG], change.key, refused or change.note), "error")
        value = change.value if self._shown else HIDDEN
        note = f"{value}  {change.note}" if change.note else value
        style = "muted" if change.effect is Effect.SAME else "plain"
        return TableRow("", (SIGNS[change.effect], change.key, note), style)

    def _show_message(self, text: str, *, is_error: bool = False) -> None:
        line = self.query_one("#sum", Static)
        line.update(one_line(text))
        line.set_class(is_error, "trouble")

    def action_reveal(self) -> None:
        self._shown = not self._shown
        self.query_one(Editor).hidden = not self._shown
        self._preview()

    @on(Button.Pressed, "#save")
    def action_save(self) -> None:
        if not self._busy:
            self._save()

    @work(exclusive=True, group="save")
    async def _save(self) -> None:
        self._busy = True
        try:
            await settled(self.query_one(Editor))
            self._refused.clear()
            self._preview()
            wanted = [one for one in self._changes if one.effect in {Effect.ADD, Effect.CHANGE}]
            if not wanted:
                self._show_message("Nothing in it would change anything.", is_error=True)
                return
            await self._take_over(wanted)
        finally:
            self._busy = False

    async def _take_over(self, wanted: Sequence[VariableChange]) -> None:
        for change in wanted:
            try:
                await self._apply(change)
                self._imported = True
            except ClientError as error:
                self._refused[change.key] = one_line(str(error))
        wrong = [one for one in self._changes if one.effect is Effect.WRONG]
        if not self._refused and not wrong:
            self.dismiss(True)
            return
        try:
            self._known = await self._parts.contents.variables(self._environment)
        except ClientError as error:
            self._show_message(f"{error} {error.next_step}", is_error=True)
            return
        self._preview()
        done = len(wanted) - len(self._refused)
        self._show_message(f"Imported {done}. Fix the marked lines, or close.", is_error=True)

    async def _apply(self, change: VariableChange) -> None:
        contents, environment = self._parts.contents, self._environment
        if change.id is not None:
            await contents.change_variable(
                environment, change.id, ChangeVariable(value=change.value)
            )
        else:
            body = CreateVariable(key=change.key, value=change.value)
            await contents.add_variable(environment, body)

    @on(Button.Pressed, "#cancel")
    def action_close(self) -> None:
        self._close()

    @work(exclusive=True, group="close")
    async def _close(self) -> None:
        with hold_keys(self, "Closing"):
            await settled(self.query_one(Editor))
        self._preview()
        undone = any(one.effect in {Effect.ADD, Effect.CHANGE} for one in self._changes)
        answer = Unsaved.DROP
        if undone:
            answer = await self.app.push_screen_wait(UnsavedScreen(counts_text(self._changes)))
        if answer is Unsaved.SAVE:
            self.action_save()
        elif answer is Unsaved.DROP:
            self.dismiss(True if self._imported else None)
