"""A form of fields, and the dialog around it, which saves and asks before typed values are dropped."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar, cast

from pydantic import BaseModel
from rich.text import Text
from textual import events, on, work
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from quarterdeck.client.errors import ClientError
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, bindings, keyed
from quarterdeck.tui.forms.kit.controls import ChoiceField, Editor, FieldRow, FoldLine, SeveralField
from quarterdeck.tui.forms.kit.spec import (
    FILL,
    Field,
    FormValues,
    InvalidValueError,
    Option,
    Refusal,
    Shown,
    refusal_of,
    spec_of,
)
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.kit.dialogs import Dialog, Unsaved, UnsavedScreen
from quarterdeck.tui.outside import OutsideError, edit
from quarterdeck.tui.textual_ext.type_ahead import hold_keys


async def settled(*widgets: Widget) -> None:
    """Wait until each of them has processed what was typed before."""
    for widget in widgets:
        handled = asyncio.Event()
        if widget.call_later(handled.set):
            await handled.wait()


class ModelForm(Vertical):
    """The fields of a model, in the order given, each with its error.

    `check` returns the request's body; `refuse` shows the service's errors. Fields always keep what was
    typed.
    """

    DEFAULT_CSS = """
    ModelForm {
        height: auto;
        & > VerticalScroll { height: auto; scrollbar-size-vertical: 1; }
        & .fold { color: $text-muted; }
        & .fold:focus { color: $text; text-style: reverse; }
        & .folded { height: auto; }
        & .help { color: $text-muted; height: auto; min-height: 1; max-height: 2; }
        & .general { color: $text-error; height: auto; display: none; }
        &.tall { height: 1fr; }
        &.tall > VerticalScroll { height: 1fr; }
    }
    """

    class Changed(Message):
        """The value of a field has changed; `path` names it."""

        def __init__(self, form: "ModelForm", path: str) -> None:
            super().__init__()
            self.form = form
            self.path = path

        @property
        def control(self) -> "ModelForm":
            """The form."""
            return self.form

    def __init__(
        self,
        model: type[BaseModel],
        fields: Sequence[Field],
        start: Mapping[str, Any] | None = None,
        *,
        changes_only: bool = False,
        id: str | None = None,
    ) -> None:
        """`start` are the initial values by name; with `changes_only` bodies contain only what was changed."""
        super().__init__(id=id)
        specs = [spec_of(model, field) for field in fields]
        self._values = FormValues(model, specs, changes_only=changes_only)
        self._values.open(start or {})
        self._rows = {spec.path: FieldRow(spec, self._values.original(spec.path)) for spec in specs}
        for path, row in self._rows.items():
            self._values.opened(path, row.entry)
        self._help = Static(classes="help", markup=False)
        self._general = Static(classes="general", markup=False)
        self._revealed = False
        self.set_class(any(field.rows == FILL for field in fields), "tall")

    def compose(self) -> ComposeResult:
        plain = [row for row in self._rows.values() if not row.spec.field.folded]
        folded = [row for row in self._rows.values() if row.spec.field.folded]
        with VerticalScroll(can_focus=False):
            yield from plain
            if folded:
                opened = any(self._given(row) for row in folded)
                yield FoldLine(len(folded), opened)
                with Vertical(classes="folded") as box:
                    box.display = opened
                    yield from folded
        yield self._general
        yield self._help

    def _given(self, row: FieldRow) -> bool:
        return self._values.original(row.spec.path) != row.spec.default

    # values

    @property
    def dirty(self) -> bool:
        """Whether there are unsaved changes."""
        return bool(self._values.changed)

    @property
    def changed(self) -> list[str]:
        """Which fields were changed."""
        return self._values.changed

    def value(self, path: str) -> Any:
        """Return the current value of a field, None when it is invalid."""
        try:
            return self._values.value(path)
        except ValueError:
            return None

    def values(self) -> dict[str, Any]:
        """Return the valid values of the fields, by path."""
        return {path: self.value(path) for path in self._rows}

    def row(self, path: str) -> FieldRow:
        """Return one field."""
        return self._rows[path]

    def put(self, path: str, entry: Shown) -> None:
        """Set a field's text as if a user had typed it."""
        control = self._rows[path].control
        if isinstance(control, Editor):
            control.load(str(entry))
        elif isinstance(control, ChoiceField):
            control.value = str(entry)
        elif not isinstance(control, SeveralField):
            control.value = entry  # pyright: ignore[reportAttributeAccessIssue]

    def offer(self, path: str, options: Sequence[Option]) -> None:
        """Give a field other choices; the chosen one is kept."""
        control = self._rows[path].control
        if isinstance(control, ChoiceField | SeveralField):
            control.offer(options)

    def begin(self, path: str, option: str) -> None:
        """Choose an initial value that was not known before, unless the user has chosen another one."""
        if path not in self.changed:
            self._values.reopen(path, option, option)
            self.put(path, option)

    def say(self, path: str, words: str) -> None:
        """Show a permanent remark below a field."""
        self._rows[path].say(words)

    async def settle(self) -> None:
        """Wait until every field has processed what was typed before."""
        for row in self._rows.values():
            await settled(row.control)
            self._values.hold(row.spec.path, row.entry)

    # saving

    def check(self) -> BaseModel | None:
        """Return the request's body, or None with the errors shown next to the fields."""
        self.clear()
        body = self._values.body()
        if isinstance(body, Refusal):
            self.show_refusal(body)
            return None
        return body

    def saved(self) -> None:
        """Note that the values in the fields are saved."""
        self._values.settle()
        for row in self._rows.values():
            row.remove_class("-changed")

    def refuse(self, error: ClientError) -> None:
        """Show the service's refusal next to the fields."""
        self.show_refusal(refusal_of(error, self._rows))

    def show_refusal(self, refusal: Refusal) -> None:
        """Show errors, and go to the first field with one."""
        for path, words in refusal.beside.items():
            self._rows[path].refuse(words)
        self._general.update(one_line(refusal.general))
        self._general.display = bool(refusal.general)
        first = next((row for row in self._rows.values() if row.error), None)
        if first is not None:
            self._unfold_for(first)
            self.call_after_refresh(self._go_to, first)

    def clear(self) -> None:
        """Remove all errors."""
        for row in self._rows.values():
            row.refuse("")
        self._general.display = False

    def _go_to(self, row: FieldRow) -> None:
        row.control.focus()
        row.scroll_visible(animate=False)

    def _unfold_for(self, row: FieldRow) -> None:
        if row.spec.field.folded:
            self.query_one(FoldLine).open = True

    # user actions

    def focus_first(self) -> None:
        """Go to the first field."""
        next(iter(self._rows.values())).control.focus()

    def limit(self, rows: int) -> None:
        """Set the most lines that the fields may take; the rest is scrolled."""
        if not self.has_class("tall"):
            self.query_one(VerticalScroll).styles.max_height = max(3, rows)

    @property
    def has_secrets(self) -> bool:
        """Whether something in it is masked."""
        return any(row.spec.field.secret for row in self._rows.values())

    def reveal(self) -> None:
        """Reveal masked values, or mask them again."""
        self._revealed = not self._revealed
        for row in self._rows.values():
            row.reveal(self._revealed)

    @property
    def editor(self) -> Editor | None:
        """The editor that has the focus, else the only one."""
        editors = [row.control for row in self._rows.values() if isinstance(row.control, Editor)]
        focused = next((editor for editor in editors if editor.has_focus), None)
        return focused or (editors[0] if len(editors) == 1 else None)

    def name_outside(self, editor: Editor) -> str:
        """Return the file name for an editor's text; empty when none is known."""
        row = next(candidate for candidate in self._rows.values() if candidate.control is editor)
        named_by = row.spec.field.named_by
        return str(self.value(named_by) or "").rpartition("/")[2] if named_by else ""

    @on(FieldRow.Changed)
    def _changed(self, event: FieldRow.Changed) -> None:
        event.stop()
        row, path = event.row, event.row.spec.path
        self._values.hold(path, row.entry)
        row.set_class(path in self._values.changed, "-changed")
        row.refuse("")
        self.post_message(self.Changed(self, path))

    @on(FoldLine.Turned)
    def _turned(self, event: FoldLine.Turned) -> None:
        event.stop()
        self.query_one(".folded").display = event.line.open

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        row = next(
            (ancestor for ancestor in event.widget.ancestors if isinstance(ancestor, FieldRow)),
            None,
        )
        words = row.spec.help if row is not None else ""
        self._help.update(words)
        self._help.set_class(bool(words), "said")


async def edit_outside(field: Editor, name: str) -> None:
    """Open the text of a field in `$VISUAL` or `$EDITOR`, and use the result.

    Not for a secret: it would be written to a file.
    """
    if field.secret:
        _notify(field, "A secret is not written to a file: edit it here.")
        return
    changed = await edited_outside(field, name, field.text)
    if changed is not None:
        field.load(changed)


async def edited_outside(widget: Widget, name: str, text: str) -> str | None:
    """Return the text as edited in the user's editor; None when nothing was changed."""
    try:
        changed = await edit(cast("App[Any]", widget.app), name, text)
    except OutsideError as error:
        _notify(widget, str(error))
        return None
    return changed if changed != text else None


def _notify(widget: Widget, text: str) -> None:
    widget.app.notify(one_line(text), severity="warning", markup=False)


R = TypeVar("R")
AROUND = 7
"""Lines of a dialog that are not fields: borders, margins, help, errors, buttons."""


class FormScreen(Dialog["R | None"], SettledLayout["R | None"], Generic[R]):
    """Dismissed with the result of `save`, or with None when nothing was saved.

    `save` is given the checked body and raises the client's errors, or `InvalidValueError`; a refusal is shown next to its
    field and the dialog stays open.
    """

    DEFAULT_CSS = """
    FormScreen {
        align: center middle;
        & > Vertical {
            width: 90;
            max-width: 98%;
            height: auto;
            max-height: 98%;
            padding: 0 2;
            background: $surface;
            border: round $border;
        }
        & > Vertical.tall { height: 98%; width: 98%; }
        & #foot { height: 1; }
        & #keys { width: 1fr; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
        & Button { margin-left: 2; min-width: 10; }
        &.-narrow Button { margin-left: 1; min-width: 8; }
        &.-narrow .choice .bounds { display: none; }
    }
    """
    place: ClassVar[KeyContext] = KeyContext.FORM
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-normal")]
    BINDINGS: ClassVar[list[BindingType]] = [
        # Escape closes the open list of a choice first.
        *(
            replace(binding, priority=binding.key != "escape")
            for binding in bindings(KeyContext.FORM)
        ),
    ]

    def __init__(
        self,
        title: str,
        form: ModelForm,
        save: Callable[[BaseModel], Awaitable[R]],
        *,
        verb: str = "Save",
    ) -> None:
        super().__init__()
        self._title = title
        self.form = form
        self._save = save
        self._verb = verb
        self._busy = False

    def compose(self) -> ComposeResult:
        box = Vertical(classes="tall" if self.form.has_class("tall") else "")
        box.border_title = Text(one_line(self._title))
        with box:
            yield self.form
            yield from self.extra()
            with Horizontal(id="foot"):
                yield Static(self._keys(), id="keys", markup=False)
                yield Button("Cancel", id="cancel", compact=True)
                yield Button(self._verb, id="save", variant="primary", compact=True)

    def extra(self) -> ComposeResult:
        """Yield widgets below the form."""
        return iter(())

    def _keys(self) -> str:
        reveal = " · {form.reveal} show hidden" if self.form.has_secrets else ""
        verb = self._verb.lower()
        return keyed(f"{{form.save}} {verb} · {{form.close}} close{reveal}")

    def on_mount(self) -> None:
        self.form.focus_first()

    @on(Button.Pressed, "#save")
    def action_save(self) -> None:
        if not self._busy:
            self._saving()

    @on(Input.Submitted)
    def _next_field(self) -> None:
        self.focus_next()

    @work(exclusive=True, group="saving")
    async def _saving(self) -> None:
        self._show_busy(True)
        try:
            await self.form.settle()
            body = self.form.check()
            if body is not None:
                self.dismiss(await self._save(body))
        except ClientError as error:
            self.form.refuse(error)
        except InvalidValueError as error:
            self.form.show_refusal(error.refusal)
        finally:
            self._show_busy(False)

    def _show_busy(self, busy: bool) -> None:
        self._busy = busy
        if self.is_mounted:
            self.query_one("#save", Button).label = f"{self._verb} …" if busy else self._verb

    @on(Button.Pressed, "#cancel")
    def action_close(self) -> None:
        self._ask_and_close()

    @work(exclusive=True, group="close")
    async def _ask_and_close(self) -> None:
        with hold_keys(self, "Closing"):
            await self.form.settle()
        if not self.form.dirty:
            self.dismiss(None)
            return
        names = ", ".join(self.form.row(path).spec.label.lower() for path in self.form.changed)
        answer = await self.app.push_screen_wait(UnsavedScreen(names))
        if answer is Unsaved.DROP:
            self.dismiss(None)
        elif answer is Unsaved.SAVE:
            self.action_save()

    def action_reveal(self) -> None:
        self.form.reveal()

    async def action_editor(self) -> None:
        editor = self.form.editor
        if editor is not None:
            await edit_outside(editor, self.form.name_outside(editor) or self._title)

    def on_resize(self) -> None:
        """Leave the lines that the parts around the fields need; the fields scroll."""
        self.form.limit(self.size.height - AROUND)
