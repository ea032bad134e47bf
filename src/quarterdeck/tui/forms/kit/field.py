"""One field of a form: label, control, bounds, and below it what is wrong."""

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, Label, Select, SelectionList, Static, TextArea

from quarterdeck.tui.forms.kit.controls import Control, Editor, LineInput, control_of, held_by
from quarterdeck.tui.forms.kit.on_off import OnOff
from quarterdeck.tui.forms.kit.reading import Shown, shown
from quarterdeck.tui.forms.kit.spec import FILL, Spec
from quarterdeck.tui.forms.kit.style import FIELD
from quarterdeck.tui.text import one_line


class FieldRow(Vertical):
    """Shows one field; tells of each change."""

    DEFAULT_CSS = FIELD

    class Changed(Message):
        """Something else stands in the field."""

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
    def held(self) -> Shown:
        """What its control holds."""
        return held_by(self.control)

    def reveal(self, on: bool) -> None:
        """Shows a secret, or hides it again."""
        if not self.spec.field.secret:
            return
        if isinstance(self.control, Editor):
            self.control.hidden = not on
        elif isinstance(self.control, LineInput):
            self.control.password = not on

    def refuse(self, words: str) -> None:
        """Says below the field what is wrong with it; nothing when it is right."""
        self._say(self._error, words)
        self.set_class(bool(words), "-wrong")

    def say(self, words: str) -> None:
        """Says something about what stands in the field."""
        self._say(self._note, words)

    @property
    def error(self) -> str:
        """What is said to be wrong."""
        return str(self._error.content) if self._error.display else ""

    def _say(self, line: Static, words: str) -> None:
        text = "\n".join(one_line(one) for one in words.splitlines())
        if text == str(line.content) and line.display == bool(text):
            return  # an update lays the whole form out anew
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
