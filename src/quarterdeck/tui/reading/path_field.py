"""A field for a path of the machine that the cockpit runs on."""

from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Static

from quarterdeck.store.local_files import completed
from quarterdeck.tui.actions import Where, bindings
from quarterdeck.tui.reading.line_input import LineInput
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import hold_keys, release_keys
from quarterdeck.tui.widgets.placed import Placed


class _Field(LineInput, Placed):
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Where.LOCAL_PATH)]

    @property
    def place(self) -> Where:
        return Where.LOCAL_PATH

    def action_done(self) -> None:
        hold_keys(self)
        self.post_message(PathField.Done(self.value))

    def action_cancel(self) -> None:
        hold_keys(self)
        self.post_message(PathField.Done(""))

    def action_complete(self) -> None:
        if (longer := completed(self.value, Path.cwd())) is not None:
            self.value = longer
            self.cursor_position = len(longer)


class PathField(Vertical):
    """Absent until it asks. What is wrong stands below it, and what was typed stays."""

    DEFAULT_CSS = """
    PathField {
        height: auto;
        display: none;
        background: $surface;
        & Horizontal { height: 1; }
        & .label { width: auto; padding: 0 1; text-style: bold; }
        & _Field { width: 1fr; }
        & .problem { height: auto; padding: 0 1; color: $text-error; display: none; }
    }
    """

    class Done(Message):
        """The path is typed; empty: the person thought better of it."""

        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Static(classes="label", markup=False)
            yield _Field(placeholder="path on this machine")
        yield Static(classes="problem", markup=False)

    @property
    def _field(self) -> _Field:
        return self.query_one(_Field)

    def ask(self, label: str, path: str = "") -> None:
        """Asks for a path, and takes the keys."""
        self.query_one(".label", Static).update(one_line(label))
        self._field.value = path
        self._field.cursor_position = len(path)
        self.refuse("")
        self.display = True
        self.screen.set_focus(self._field)
        release_keys(self)

    def refuse(self, problem: str) -> None:
        """Says why the path will not do; it can be mended."""
        line = self.query_one(".problem", Static)
        line.display = bool(problem)
        line.update(one_line(problem))

    @property
    def asking(self) -> bool:
        """Whether it waits for a path."""
        return bool(self.display)

    def close(self) -> None:
        """Asks no more."""
        self.display = False

    @on(_Field.Changed)
    def _typed(self, event: _Field.Changed) -> None:
        event.stop()
        self.refuse("")
