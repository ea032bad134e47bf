"""A form made from a model of the wire."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.widgets import Static

from quarterdeck.client.errors import ClientError
from quarterdeck.tui.forms.kit.controls import Choice, Editor, Several
from quarterdeck.tui.forms.kit.errors import Refusal, refusal_of
from quarterdeck.tui.forms.kit.field import FieldRow
from quarterdeck.tui.forms.kit.fold import FoldLine
from quarterdeck.tui.forms.kit.reading import Shown
from quarterdeck.tui.forms.kit.settling import settled
from quarterdeck.tui.forms.kit.spec import FILL, Field, Option, spec_of
from quarterdeck.tui.forms.kit.style import FORM
from quarterdeck.tui.forms.kit.values import FormValues
from quarterdeck.tui.text import one_line


class ModelForm(Vertical):
    """The fields of a model, in the order given, with what is wrong beside each.

    `check` gives the request's body; `refuse` places what the service said. Fields keep what was
    typed whatever happens.
    """

    DEFAULT_CSS = FORM

    class Changed(Message):
        """A field holds something else; `path` names it."""

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
        """`start` holds values by name; `changes_only` makes bodies of what was changed alone."""
        super().__init__(id=id)
        specs = [spec_of(model, field) for field in fields]
        self._values = FormValues(model, specs, changes_only=changes_only)
        self._values.open(start or {})
        self._rows = {spec.path: FieldRow(spec, self._values.original(spec.path)) for spec in specs}
        for path, row in self._rows.items():
            self._values.opened(path, row.held)
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

    # what stands in it

    @property
    def dirty(self) -> bool:
        """Whether something was changed and not saved."""
        return bool(self._values.changed)

    @property
    def changed(self) -> list[str]:
        """Which fields were changed."""
        return self._values.changed

    def value(self, path: str) -> Any:
        """The value of a field as it stands now, None when it cannot be read."""
        try:
            return self._values.value(path)
        except ValueError:
            return None

    def values(self) -> dict[str, Any]:
        """What stands in the fields and can be read, by path."""
        return {path: self.value(path) for path in self._rows}

    def row(self, path: str) -> FieldRow:
        """One field."""
        return self._rows[path]

    def put(self, path: str, held: Shown) -> None:
        """Writes into a field as a person would."""
        control = self._rows[path].control
        if isinstance(control, Editor):
            control.load(str(held))
        elif isinstance(control, Choice):
            control.value = str(held)
        elif not isinstance(control, Several):
            control.value = held  # pyright: ignore[reportAttributeAccessIssue]

    def offer(self, path: str, options: Sequence[Option]) -> None:
        """Gives a field other choices; what is chosen stays."""
        control = self._rows[path].control
        if isinstance(control, Choice | Several):
            control.offer(options)

    def say(self, path: str, words: str) -> None:
        """Says something below a field; nothing takes it away."""
        self._rows[path].say(words)

    async def settle(self) -> None:
        """Waits until every field has taken in what was typed into it before."""
        for row in self._rows.values():
            await settled(row.control)
            self._values.hold(row.spec.path, row.held)

    # saving

    def check(self) -> BaseModel | None:
        """The request's body, or None with what is wrong said beside the fields."""
        self.clear()
        body = self._values.body()
        if isinstance(body, Refusal):
            self.show_refusal(body)
            return None
        return body

    def saved(self) -> None:
        """What stands there is saved: nothing of it is unsaved any more."""
        self._values.settle()
        for row in self._rows.values():
            row.remove_class("-changed")

    def refuse(self, error: ClientError) -> None:
        """Says beside the fields what the service refused."""
        self.show_refusal(refusal_of(error, self._rows))

    def show_refusal(self, refusal: Refusal) -> None:
        """Says what is wrong, and goes to the first field with a fault."""
        for path, words in refusal.beside.items():
            self._rows[path].refuse(words)
        self._general.update(one_line(refusal.general))
        self._general.display = bool(refusal.general)
        first = next((row for row in self._rows.values() if row.error), None)
        if first is not None:
            self._unfold_for(first)
            self.call_after_refresh(self._go_to, first)

    def clear(self) -> None:
        """Takes away what was said to be wrong."""
        for row in self._rows.values():
            row.refuse("")
        self._general.display = False

    def _go_to(self, row: FieldRow) -> None:
        row.control.focus()
        row.scroll_visible(animate=False)

    def _unfold_for(self, row: FieldRow) -> None:
        if row.spec.field.folded:
            self.query_one(FoldLine).open = True

    # what a person does in it

    def focus_first(self) -> None:
        """Goes to the first field."""
        next(iter(self._rows.values())).control.focus()

    def limit(self, rows: int) -> None:
        """The most lines that the fields may take; the rest is scrolled to."""
        if not self.has_class("tall"):
            self.query_one(VerticalScroll).styles.max_height = max(3, rows)

    @property
    def has_secrets(self) -> bool:
        """Whether something in it is masked."""
        return any(row.spec.field.secret for row in self._rows.values())

    def reveal(self) -> None:
        """Shows what is masked, or hides it again."""
        self._revealed = not self._revealed
        for row in self._rows.values():
            row.reveal(self._revealed)

    @property
    def editor(self) -> Editor | None:
        """The editor that has the focus, else the only one."""
        editors = [row.control for row in self._rows.values() if isinstance(row.control, Editor)]
        focused = next((one for one in editors if one.has_focus), None)
        return focused or (editors[0] if len(editors) == 1 else None)

    def name_outside(self, editor: Editor) -> str:
        """What the text of an editor is called in a file; empty when nothing says it."""
        row = next(one for one in self._rows.values() if one.control is editor)
        named_by = row.spec.field.named_by
        return str(self.value(named_by) or "").rpartition("/")[2] if named_by else ""

    @on(FieldRow.Changed)
    def _changed(self, event: FieldRow.Changed) -> None:
        event.stop()
        row, path = event.row, event.row.spec.path
        self._values.hold(path, row.held)
        row.set_class(path in self._values.changed, "-changed")
        row.refuse("")
        self.post_message(self.Changed(self, path))

    @on(FoldLine.Turned)
    def _turned(self, event: FoldLine.Turned) -> None:
        event.stop()
        self.query_one(".folded").display = event.line.open

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        row = next((one for one in event.widget.ancestors if isinstance(one, FieldRow)), None)
        words = row.spec.help if row is not None else ""
        self._help.update(words)
        self._help.set_class(bool(words), "said")
