"""A dialog around a form: it saves, and asks before typed values are dropped."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import ClassVar, Generic, TypeVar

from pydantic import BaseModel
from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Input, Static

from quarterdeck.client.errors import ClientError
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, bindings
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.forms.kit.form import ModelForm, edit_outside
from quarterdeck.tui.forms.kit.style import SCREEN
from quarterdeck.tui.forms.kit.values import InvalidValueError
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.kit.dialogs import Dialog, Unsaved, UnsavedScreen
from quarterdeck.tui.textual_ext.type_ahead import hold_keys

R = TypeVar("R")
AROUND = 7
"""Lines of a dialog that are not fields: borders, margins, help, errors, buttons."""


class FormScreen(SettledLayout["R | None"], Dialog["R | None"], Generic[R]):
    """Dismissed with the result of `save`, or with None when nothing was saved.

    `save` is given the checked body and raises the client's errors, or `InvalidValueError`; a refusal is shown next to its
    field and the dialog stays open.
    """

    DEFAULT_CSS = SCREEN
    place: ClassVar[KeyContext] = KeyContext.FORM
    BINDINGS: ClassVar[list[BindingType]] = [
        # Escape closes the open list of a choice first.
        *(replace(one, priority=one.key != "escape") for one in bindings(KeyContext.FORM)),
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
        """Return what is below the form."""
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
