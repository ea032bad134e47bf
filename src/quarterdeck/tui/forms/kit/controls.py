"""Controls of a form."""

import re
from collections.abc import Sequence
from typing import ClassVar, cast

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.reactive import reactive, var
from textual.strip import Strip
from textual.widgets import Input, Label, Select, SelectionList, Static, TextArea
from textual.widgets._select import SelectCurrent
from textual.widgets.selection_list import Selection

from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, action_id_of
from quarterdeck.tui.forms.kit.spec import FILL, FieldKind, Option, Shown, Spec, shown
from quarterdeck.tui.kit.fields import LineInput

_BULLET = "•"
_ZERO_WIDTH = "\u200c"
_UNSEEN = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)


def harmless(text: str) -> str:
    """Return a text of the same length, without terminal control characters."""
    return _UNSEEN.sub(_ZERO_WIDTH, text)


def masked(text: str) -> str:
    """Return a bullet for each character."""
    return _BULLET * len(text)


class OnOff(Static, can_focus=True):
    """On or off; space, enter and a click toggle it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "turn", "Turn it", show=False),
    ]

    value: reactive[bool] = reactive(False, init=False)
    label: reactive[str] = reactive("", init=False)
    """The text instead of `yes` and `no`."""

    class Changed(Message):
        """It was toggled."""

        def __init__(self, switch: "OnOff") -> None:
            super().__init__()
            self.switch = switch

        @property
        def control(self) -> "OnOff":
            """The switch."""
            return self.switch

    def __init__(self, entry: bool, *, id: str | None = None) -> None:
        super().__init__(_words(entry, ""), markup=False, id=id)
        self.set_reactive(OnOff.value, entry)

    def watch_label(self) -> None:
        self.update(_words(self.value, self.label))

    def watch_value(self) -> None:
        self.update(_words(self.value, self.label))
        self.post_message(self.Changed(self))

    def action_turn(self) -> None:
        self.value = not self.value

    def on_click(self) -> None:
        self.action_turn()


def _words(on: bool, label: str) -> str:
    return f"[x] {label or 'yes'}" if on else f"[ ] {label or 'no'}"


class FieldInput(LineInput):
    """One line of text; a secret one is masked."""

    def __init__(self, spec: Spec, entry: str) -> None:
        super().__init__(
            entry,
            placeholder=spec.field.placeholder,
            password=spec.field.secret,
            select_on_focus=False,
        )

    @property
    def _value(self) -> Text:
        text = masked(self.value) if self.password else harmless(self.value)
        return Text(text, no_wrap=True, overflow="ignore", end="")


class Editor(TextArea):
    """Several lines; a secret is masked, character by character, until it is revealed."""

    hidden = var(False)

    def __init__(self, entry: str, *, secret: bool, rows: int) -> None:
        super().__init__(entry, tab_behavior="focus", soft_wrap=True, compact=False)
        self.cursor_blink = False
        self.highlight_cursor_line = False
        self.secret = secret
        self.set_reactive(Editor.hidden, secret)
        self.styles.height = "1fr" if rows == FILL else rows + 2

    def watch_hidden(self) -> None:
        self.notify_style_update()  # forgets the cached lines
        self.refresh()

    async def _on_key(self, event: events.Key) -> None:
        if (
            action_id_of(KeyContext.COMPOSER, event.key) == "composer.newline"
            and not self.read_only
        ):
            event.stop()
            event.prevent_default()
            self.insert("\n")
        else:
            await super()._on_key(event)

    def load(self, text: str) -> None:
        """Load another text, which can be undone."""
        self.replace(text, self.document.start, self.document.end)

    def get_line(self, line_index: int) -> Text:
        plain = self.document.get_line(line_index)
        return Text(_mask(plain) if self.hidden else harmless(plain), end="", no_wrap=True)


def _mask(text: str) -> str:
    """Return bullets in as many cells as the characters have, so that the cursor fits."""
    return "".join(masked("x" * cell_len(character)) or "\u200c" for character in text)


class ChoiceField(Select[str]):
    """One of several; an optional field may have none."""

    def __init__(self, spec: Spec, entry: str | None) -> None:
        self._may_be_none = spec.optional or entry is None
        self._begins_with = entry
        self._began = False
        options, value = _with_value(spec.options, entry)
        super().__init__(
            [(Text(words), option) for words, option in options],
            prompt=one_line(spec.field.none if spec.optional else "choose"),
            allow_blank=self._may_be_none,
            value=cast(str, Select.NULL) if value is None else value,
            compact=True,
        )

    def offer(self, options: Sequence[Option]) -> None:
        """Offer other choices; the chosen one is kept, whether or not it is among them."""
        offered, value = _with_value(options, self.entry)
        self.set_options([(Text(words), option) for words, option in offered])
        if value is not None:
            self.value = value
        if value is not None and self._began:
            # Where the value is the same, Textual keeps showing the previous label.
            words = next(words for words, option in offered if option == value)
            self.query_one(SelectCurrent).update(Text(words))

    @property
    def entry(self) -> str | None:
        """The chosen value."""
        return self.selection if self._began else self._begins_with

    def on_mount(self) -> None:
        # Textual accepts the value only now.
        self._began = True


def _with_value(options: Sequence[Option], entry: str | None) -> tuple[list[Option], str | None]:
    shown = [(one_line(words), value) for words, value in options]
    if entry is not None and entry not in {value for _, value in shown}:
        shown.append((one_line(entry), entry))
    return shown, entry


class SeveralField(SelectionList[str]):
    """Any number of several."""

    ROWS = 6

    def __init__(self, spec: Spec, entry: Sequence[str]) -> None:
        super().__init__(*_selections(spec.options, entry), compact=True)
        self.styles.height = max(1, min(self.ROWS, len(spec.options)))

    def offer(self, options: Sequence[Option]) -> None:
        """Offer other choices; the chosen ones are kept, whether or not they are among them."""
        chosen = self.entry
        self.clear_options()
        self.add_options(_selections(options, chosen))
        self.styles.height = max(1, min(self.ROWS, self.option_count))

    @property
    def entry(self) -> tuple[str, ...]:
        """The chosen values."""
        return tuple(self.selected)

    def render_line(self, y: int) -> Strip:
        """Return a line as Textual renders it, but with marks that differ without colors."""
        line, index = super().render_line(y), self.scroll_offset.y + y
        if index >= self.option_count:
            return line
        chosen = self.get_option_at_index(index).value in self.selected
        *button, space = list(line)[:4]
        style = space.style or self.rich_style
        if button[1].style is not None:
            style += Style(meta=button[1].style.meta)  # the action of a click
        mark = Segment("[x]" if chosen else "[ ]", style)
        return Strip([mark, space, *list(line)[4:]])


def _selections(options: Sequence[Option], entry: Sequence[str]) -> list[Selection[str]]:
    known = {value for _, value in options}
    rest = [(value, value) for value in entry if value not in known]
    return [
        Selection(Text(one_line(words)), value, value in entry)
        for words, value in (*options, *rest)
    ]


Control = FieldInput | Editor | ChoiceField | SeveralField | OnOff


def control_of(spec: Spec, entry: Shown) -> Control:
    """Return the control for a field, with a value."""
    match spec.kind:
        case FieldKind.SWITCH:
            return OnOff(bool(entry))
        case FieldKind.CHOICE:
            return ChoiceField(spec, cast("str | None", entry))
        case FieldKind.CHOICES:
            return SeveralField(spec, cast("tuple[str, ...]", entry))
        case FieldKind.LINES | FieldKind.LIST | FieldKind.PAIRS:
            return Editor(str(entry), secret=spec.field.secret, rows=spec.field.rows)
        case FieldKind.TEXT | FieldKind.NUMBER:
            return FieldInput(spec, str(entry))


def entry_of(control: Control) -> Shown:
    """Return the value of a control."""
    match control:
        case OnOff():
            return control.value
        case ChoiceField() | SeveralField():
            return control.entry
        case Editor():
            return control.text
        case FieldInput():
            return control.value


class FoldLine(Static, can_focus=True):
    """Opened and folded by enter, space, or a click."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "turn", "Open or fold", show=False)
    ]

    open: reactive[bool] = reactive(False, init=False)

    class Turned(Message):
        """It was opened or folded."""

        def __init__(self, line: "FoldLine") -> None:
            super().__init__()
            self.line = line

        @property
        def control(self) -> "FoldLine":
            """The line."""
            return self.line

    def __init__(self, count: int, opened: bool) -> None:
        self._count = count
        super().__init__(self._words(opened), classes="fold", markup=False)
        self.set_reactive(FoldLine.open, opened)

    def _words(self, opened: bool) -> str:
        return "▾ Fewer options" if opened else f"▸ More options ({self._count})"

    def watch_open(self, opened: bool) -> None:
        self.update(self._words(opened))
        self.post_message(self.Turned(self))

    def action_turn(self) -> None:
        self.open = not self.open

    def on_click(self) -> None:
        self.action_turn()


class FieldRow(Vertical):
    """Show one field and report each change."""

    DEFAULT_CSS = """
    FieldRow {
        height: auto;
        & > Horizontal { height: auto; }
        & .label { width: 16; color: $text-muted; }
        & .bounds { width: auto; max-width: 24; color: $text-muted; padding: 0 0 0 1; }
        & FieldInput, & ChoiceField, & SeveralField { width: 1fr; }
        & OnOff { width: 1fr; &:focus { text-style: reverse; } }
        & Editor { border: round $panel-lighten-2; padding: 0 1; }
        & Editor { border-title-color: $text-muted; border-subtitle-color: $text-muted; }
        & Editor:focus { border: round $border; }
        & .error { color: $text-error; height: auto; display: none; margin-left: 16; }
        & .note { color: $text-muted; height: auto; display: none; margin-left: 16; }
        &.lines .error, &.lines .note { margin-left: 2; }
        &.tall { height: 1fr; min-height: 6; }
        &.-changed .label { color: $text-warning; }
        &.-changed Editor { border-title-color: $text-warning; }
        &.-wrong Editor { border: round $error; }
    }
    """

    class Changed(Message):
        """The value of the field has changed."""

        def __init__(self, row: "FieldRow") -> None:
            super().__init__()
            self.row = row

        @property
        def control(self) -> "FieldRow":
            """The field."""
            return self.row

    def __init__(self, spec: Spec, value: object) -> None:
        super().__init__()
        self.spec = spec
        self.control: Control = control_of(spec, shown(spec, value))
        self._error = Static(classes="error", markup=False)
        self._note = Static(classes="note", markup=False)
        self.set_class(spec.field.rows == FILL, "tall")
        self.set_class(isinstance(self.control, Editor), "lines")
        self.set_class(isinstance(self.control, ChoiceField), "choice")

    def compose(self) -> ComposeResult:
        control, spec = self.control, self.spec
        if isinstance(control, Editor):
            control.border_title = Text(one_line(spec.label))
            control.border_subtitle = Text(spec.bounds)
            yield control
        else:
            with Horizontal():
                yield Label(spec.label, classes="label", markup=False)
                yield control
                if spec.bounds:
                    yield Label(spec.bounds, classes="bounds", markup=False)
        yield self._error
        yield self._note

    @property
    def entry(self) -> Shown:
        """The value of its control."""
        return entry_of(self.control)

    def reveal(self, on: bool) -> None:
        """Show a secret, or hide it again."""
        if not self.spec.field.secret:
            return
        if isinstance(self.control, Editor):
            self.control.hidden = not on
        elif isinstance(self.control, FieldInput):
            self.control.password = not on

    def refuse(self, words: str) -> None:
        """Show an error below the field; None removes it."""
        self._say(self._error, words)
        self.set_class(bool(words), "-wrong")

    def say(self, words: str) -> None:
        """Show a remark about the value in the field."""
        self._say(self._note, words)

    @property
    def error(self) -> str:
        """The error that is shown."""
        return str(self._error.content) if self._error.display else ""

    def _say(self, line: Static, words: str) -> None:
        text = "\n".join(one_line(row) for row in words.splitlines())
        if text == str(line.content) and line.display == bool(text):
            return  # an update lays the whole form out again
        line.update(text)
        line.display = bool(text)

    @on(Input.Changed)
    @on(TextArea.Changed)
    @on(Select.Changed)
    @on(OnOff.Changed)
    @on(SelectionList.SelectedChanged)
    def _taken(self, event: Message) -> None:
        event.stop()
        self.post_message(self.Changed(self))
