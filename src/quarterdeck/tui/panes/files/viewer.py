"""One file of a replica, read-only: lines with numbers and colors, or what it is instead."""

from typing import ClassVar

from textual.binding import BindingType

from quarterdeck.store.files_content import OpenFile, content_words, size_words
from quarterdeck.tui.actions import Where, eager_bindings
from quarterdeck.tui.reading.colored import ColoredReader
from quarterdeck.tui.reading.pages import OutputPage, SourcePage

NO_COLORS = "Too large for colors."


class FileReader(ColoredReader):
    """Shows an `OpenFile`. It can be read at once; its colors come a moment later."""

    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(Where.FILE)]

    def __init__(self) -> None:
        super().__init__()
        self.file: OpenFile | None = None

    @property
    def place(self) -> Where:
        return Where.FILE

    def show_file(self, file: OpenFile) -> None:
        """Shows a file; the reader stays where they are in one that was read anew."""
        before, self.file = self.file, file
        same = before is not None and (before.repo_name, before.path) == (file.repo_name, file.path)
        if same and before == file:
            return
        facts = size_words(file.size)
        if file.text is None:
            self.show_page(file.path, OutputPage(_instead(file)), facts=facts)
            self.say("")
            return
        page = SourcePage(file.text)
        self.show_page(file.path, page, facts=facts, keep=same)
        known = [content_words(file), "" if self.color(file.name, page) else NO_COLORS]
        self.say(" ".join(words for words in known if words))


def _instead(file: OpenFile) -> str:
    begins = " ".join(f"{byte:02x}" for byte in file.data[:16])
    return f"{content_words(file)}\n\nIt begins with: {begins}\n\ne opens a copy in $EDITOR."
