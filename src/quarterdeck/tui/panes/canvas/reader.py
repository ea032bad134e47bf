"""One item of a canvas: rendered markdown, text, or what it is instead."""

from typing import ClassVar

from textual.binding import BindingType

from quarterdeck.store.canvas import OpenItem
from quarterdeck.tui.actions import Where, eager_bindings
from quarterdeck.tui.panes.canvas.words import instead_words, item_facts
from quarterdeck.tui.reading.colored import ColoredReader
from quarterdeck.tui.reading.pages import MarkdownPage, OutputPage, SourcePage


class CanvasReader(ColoredReader):
    """Markdown is rendered, until its text is asked for."""

    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(Where.CANVAS_FILE)]

    def __init__(self) -> None:
        super().__init__()
        self.item: OpenItem | None = None
        self._as_text = False

    @property
    def place(self) -> Where:
        return Where.CANVAS_FILE

    def show_item(self, item: OpenItem) -> None:
        """Shows an item; the reader stays where they are in one that was read anew."""
        before, self.item = self.item, item
        self._show(keep=before is not None and before.filename == item.filename)

    def turn(self) -> None:
        """Markdown as its text, or rendered again."""
        if self.item is not None and self.item.is_markdown:
            self._as_text = not self._as_text
            self._show(keep=False)

    def _show(self, *, keep: bool) -> None:
        item = self.item
        if item is None:
            return
        facts = item_facts(item)
        if item.text is None:
            self.show_page(item.filename, OutputPage(instead_words(item)), facts=facts)
        elif item.is_markdown and not self._as_text:
            self.show_page(item.filename, MarkdownPage(item.text), facts=facts, keep=keep)
        else:
            page = SourcePage(item.text)
            self.show_page(item.filename, page, facts=facts, keep=keep)
            self.color(item.filename, page)
