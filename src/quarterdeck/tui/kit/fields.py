"""Fields of one line: for any text, for a search text, and for a path of this machine."""

from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.geometry import Size
from textual.message import Message
from textual.reactive import Reactive
from textual.widgets import Input, Static

from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, bindings
from quarterdeck.tui.kit.key_context import HasKeyContext


class LineInput(Input):
    """An input of one row that does not lay out the screen again with every character.

    The lines of a pasted text are joined by blanks; a secret keeps only the first.
    """

    DEFAULT_CSS = """
    LineInput {
        background: $surface;
        &:focus { background: $boost; }
        & > .input--cursor { text-style: reverse; }
    }
    """

    virtual_size = Reactive(Size(0, 0), layout=False)

    def __init__(
        self,
        value: str = "",
        *,
        placeholder: str = "",
        password: bool = False,
        select_on_focus: bool = True,
        id: str | None = None,
    ) -> None:
        super().__init__(
            value,
            placeholder=placeholder,
            password=password,
            select_on_focus=select_on_focus,
            compact=True,
            id=id,
        )
        self.cursor_blink = False

    def _on_paste(self, event: events.Paste) -> None:
        # The base class inserts the first line alone.
        if not self.password and len(event.text.splitlines()) > 1:
            event.text = one_line(event.text)


class FindField(LineInput, HasKeyContext):
    """The field for a search text."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyContext.FIND)]

    class Left(Message):
        """Back to the text; with `kept` the matches stay marked."""

        def __init__(self, kept: bool) -> None:
            super().__init__()
            self.kept = kept

    class Next(Message):
        """Go to another match."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    @property
    def place(self) -> KeyContext:
        return KeyContext.FIND

    def action_leave(self, kept: bool) -> None:
        self.post_message(self.Left(kept))

    def action_step(self, step: int) -> None:
        self.post_message(self.Next(step))


class PathInput(LineInput, HasKeyContext):
    """An input for a path, with completion."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyContext.LOCAL_PATH)]

    @property
    def place(self) -> KeyContext:
        return KeyContext.LOCAL_PATH

    def action_done(self) -> None:
        self.post_message(PathField.Done(self.value))

    def action_cancel(self) -> None:
        self.post_message(PathField.Done(""))

    def action_complete(self) -> None:
        from quarterdeck.store.files import completed  # forms have fields, too, but no files

        if (longer := completed(self.value, Path.cwd())) is not None:
            self.value = longer
            self.cursor_position = len(longer)


class PathField(Vertical):
    """Hidden until it asks. An error is shown below it, and what was typed is kept."""

    DEFAULT_CSS = """
    PathField {
        height: auto;
        display: none;
        background: $surface;
        & Horizontal { height: 1; }
        & .label { width: auto; padding: 0 1; text-style: bold; }
        & PathInput { width: 1fr; }
        & .problem { height: auto; padding: 0 1; color: $text-error; display: none; }
    }
    """

    class Done(Message):
        """The path is typed; empty: canceled."""

        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Static(classes="label", markup=False)
            yield PathInput(placeholder="path on this machine")
        yield Static(classes="problem", markup=False)

    @property
    def _field(self) -> PathInput:
        return self.query_one(PathInput)

    def ask(self, label: str, path: str = "") -> None:
        """Ask for a path, and take the focus."""
        self.query_one(".label", Static).update(one_line(label))
        self._field.value = path
        self._field.cursor_position = len(path)
        self.refuse("")
        self.display = True
        self.screen.set_focus(self._field)

    def refuse(self, problem: str) -> None:
        """Show why the path is refused; it can be corrected."""
        line = self.query_one(".problem", Static)
        line.display = bool(problem)
        line.update(one_line(problem))

    @property
    def asking(self) -> bool:
        """Whether it waits for a path."""
        return bool(self.display)

    def close(self) -> None:
        """Stop asking."""
        self.display = False

    @on(PathInput.Changed)
    def _typed(self, event: PathInput.Changed) -> None:
        event.stop()
        self.refuse("")
