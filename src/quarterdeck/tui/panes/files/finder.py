"""Where files are searched for: a line to type in, what was found, and how far it can be trusted."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Static

from quarterdeck.store.files import FileFinder
from quarterdeck.tui.actions import Where, bindings, eager_bindings
from quarterdeck.tui.panes.files.rows import key_of, row_of
from quarterdeck.tui.panes.files.words import empty_words, found_words
from quarterdeck.tui.reading.deeds import Doer
from quarterdeck.tui.reading.line_input import LineInput
from quarterdeck.tui.reading.row_list import RowList
from quarterdeck.tui.text import one_line
from quarterdeck.tui.widgets.placed import Placed
from quarterdeck.wire.files import FoundFile


class FinderField(LineInput, Doer, Placed):
    """Every character searches."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Where.FINDER)]

    @property
    def place(self) -> Where:
        return Where.FINDER


class FoundList(RowList, Doer, Placed):
    """What was found; here letters are keys."""

    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(Where.FOUND)]

    @property
    def place(self) -> Where:
        return Where.FOUND


class Finder(Vertical):
    """Shows a `FileFinder`; what it asks for is the pane's to do."""

    DEFAULT_CSS = """
    Finder {
        & FoundList { height: 1fr; }
        & #found-words { height: 1; padding: 0 1; color: $text-muted; }
        & #found-words.trouble { color: $text-error; }
    }
    """

    def __init__(self, finder: FileFinder) -> None:
        super().__init__()
        self._finder = finder
        self._by_key: dict[str, FoundFile] = {}
        self._shown = ""
        self._problem = ""

    def compose(self) -> ComposeResult:
        yield FinderField(placeholder="find a file by its name or path")
        yield FoundList()
        yield Static(found_words(self._finder), id="found-words", markup=False)

    @property
    def field(self) -> FinderField:
        return self.query_one(FinderField)

    @property
    def found(self) -> FoundList:
        return self.query_one(FoundList)

    @property
    def chosen(self) -> FoundFile | None:
        """The file under the cursor."""
        return self._by_key.get(self.found.selected)

    def show_found(self) -> None:
        """Shows what the search has found by now; another search begins at its best match."""
        files, asked = self._finder.files, self._finder.asked or ""
        several = len({file.repo_name for file in files}) > 1
        self._by_key = {key_of(file): file for file in files}
        rows = [row_of(file, asked, several=several) for file in files]
        self.found.empty = empty_words(self._finder)
        self.found.show_rows(rows, keep=asked == self._shown)
        self._shown = asked
        self.say(self._problem)

    def say(self, problem: str) -> None:
        """Says what went wrong, until the person does the next thing, else what was found."""
        self._problem = problem
        line = self.query_one("#found-words", Static)
        line.set_class(bool(problem), "trouble")
        line.update(one_line(problem) if problem else found_words(self._finder))
