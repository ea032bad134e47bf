"""The controls of a form: Textual's, painted so that what comes from elsewhere does no harm."""

from collections.abc import Sequence
from typing import cast

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.reactive import var
from textual.strip import Strip
from textual.widgets import Input, Select, SelectionList, TextArea
from textual.widgets._select import SelectCurrent
from textual.widgets.selection_list import Selection

from quarterdeck.tui.actions import Where, which
from quarterdeck.tui.forms.kit.harmless import harmless, masked
from quarterdeck.tui.forms.kit.on_off import OnOff
from quarterdeck.tui.forms.kit.reading import Shown
from quarterdeck.tui.forms.kit.spec import FILL, Kind, Option, Spec
from quarterdeck.tui.text import one_line


class LineInput(Input):
    """One line of text; a secret one is masked."""

    def __init__(self, spec: Spec, held: str) -> None:
        super().__init__(
            held,
            placeholder=spec.field.placeholder,
            password=spec.field.secret,
            compact=True,
            select_on_focus=False,
        )
        self.cursor_blink = False

    @property
    def _value(self) -> Text:
        text = masked(self.value) if self.password else harmless(self.value)
        return Text(text, no_wrap=True, overflow="ignore", end="")


class Editor(TextArea):
    """Several lines; a secret one is masked, character by character, until it is asked for."""

    hidden = var(False)

    def __init__(self, held: str, *, secret: bool, rows: int) -> None:
        super().__init__(held, tab_behavior="focus", soft_wrap=True, compact=False)
        self.cursor_blink = False
        self.highlight_cursor_line = False
        self.secret = secret
        self.set_reactive(Editor.hidden, secret)
        self.styles.height = "1fr" if rows == FILL else rows + 2

    def watch_hidden(self) -> None:
        self.notify_style_update()  # forgets the lines that were painted
        self.refresh()

    async def _on_key(self, event: events.Key) -> None:
        if which(Where.COMPOSER, event.key) == "composer.newline" and not self.read_only:
            event.stop()
            event.prevent_default()
            self.insert("\n")
        else:
            await super()._on_key(event)

    def load(self, text: str) -> None:
        """Another text, which can be undone."""
        self.replace(text, self.document.start, self.document.end)

    def get_line(self, line_index: int) -> Text:
        plain = self.document.get_line(line_index)
        return Text(_mask(plain) if self.hidden else harmless(plain), end="", no_wrap=True)


def _mask(text: str) -> str:
    """Bullets in as many cells as the characters have: the cursor stands where they are."""
    return "".join(masked("x" * cell_len(character)) or "\u200c" for character in text)


class Choice(Select[str]):
    """One of several; an optional field may have none."""

    def __init__(self, spec: Spec, held: str | None) -> None:
        self._may_be_none = spec.optional or held is None
        self._begins_with = held
        self._began = False
        options, value = _with_value(spec.options, held)
        super().__init__(
            [(Text(words), one) for words, one in options],
            prompt=one_line(spec.field.none if spec.optional else "choose"),
            allow_blank=self._may_be_none,
            value=cast(str, Select.NULL) if value is None else value,
            compact=True,
        )

    def offer(self, options: Sequence[Option]) -> None:
        """Other choices; the chosen one stays, whether or not it is among them."""
        offered, value = _with_value(options, self.held)
        self.set_options([(Text(words), one) for words, one in offered])
        if value is not None:
            self.value = value
        if value is not None and self._began:
            # Where the value is the same, Textual goes on showing the words from before.
            words = next(words for words, one in offered if one == value)
            self.query_one(SelectCurrent).update(Text(words))

    @property
    def held(self) -> str | None:
        """What is chosen."""
        return self.selection if self._began else self._begins_with

    def on_mount(self) -> None:
        # Textual takes the value up only now.
        self._began = True


def _with_value(options: Sequence[Option], held: str | None) -> tuple[list[Option], str | None]:
    shown = [(one_line(words), value) for words, value in options]
    if held is not None and held not in {value for _, value in shown}:
        shown.append((one_line(held), held))
    return shown, held


class Several(SelectionList[str]):
    """Any number of several."""

    ROWS = 6

    def __init__(self, spec: Spec, held: Sequence[str]) -> None:
        super().__init__(*_selections(spec.options, held), compact=True)
        self.styles.height = max(1, min(self.ROWS, len(spec.options)))

    def offer(self, options: Sequence[Option]) -> None:
        """Other choices; those that are chosen stay, whether or not they are among them."""
        chosen = self.held
        self.clear_options()
        self.add_options(_selections(options, chosen))
        self.styles.height = max(1, min(self.ROWS, self.option_count))

    @property
    def held(self) -> tuple[str, ...]:
        """What is chosen."""
        return tuple(self.selected)

    def render_line(self, y: int) -> Strip:
        """As Textual paints it, but with marks that are told apart without their colors."""
        line, index = super().render_line(y), self.scroll_offset.y + y
        if index >= self.option_count:
            return line
        chosen = self.get_option_at_index(index).value in self.selected
        *button, space = list(line)[:4]
        style = space.style or self.rich_style
        if button[1].style is not None:
            style += Style(meta=button[1].style.meta)  # what a click on it does
        mark = Segment("[x]" if chosen else "[ ]", style)
        return Strip([mark, space, *list(line)[4:]])


def _selections(options: Sequence[Option], held: Sequence[str]) -> list[Selection[str]]:
    known = {value for _, value in options}
    rest = [(value, value) for value in held if value not in known]
    return [
        Selection(Text(one_line(words)), value, value in held) for words, value in (*options, *rest)
    ]


Control = LineInput | Editor | Choice | Several | OnOff


def control_of(spec: Spec, held: Shown) -> Control:
    """The control for a field, holding a value."""
    match spec.kind:
        case Kind.SWITCH:
            return OnOff(bool(held))
        case Kind.CHOICE:
            return Choice(spec, cast("str | None", held))
        case Kind.CHOICES:
            return Several(spec, cast("tuple[str, ...]", held))
        case Kind.LINES | Kind.LIST | Kind.PAIRS:
            return Editor(str(held), secret=spec.field.secret, rows=spec.field.rows)
        case Kind.TEXT | Kind.NUMBER:
            return LineInput(spec, str(held))


def held_by(control: Control) -> Shown:
    """What a control holds."""
    match control:
        case OnOff():
            return control.value
        case Choice() | Several():
            return control.held
        case Editor():
            return control.text
        case LineInput():
            return control.value
