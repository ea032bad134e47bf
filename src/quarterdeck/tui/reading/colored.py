"""A reader whose source gets its colors a moment after it can be read."""

import asyncio

from textual import work

from quarterdeck.tui.reading.coloring import can_color, color
from quarterdeck.tui.reading.pages import SourcePage
from quarterdeck.tui.reading.reader import Reader


class ColoredReader(Reader):
    """Colors what it shows."""

    def color(self, name: str, page: SourcePage) -> bool:
        """Colors a page by its file's name, unless it is too large for that."""
        if not can_color(page.lines):
            return False
        self._color(name, page)
        return True

    @work(group="color", exclusive=True)
    async def _color(self, name: str, page: SourcePage) -> None:
        # In a thread: the first file loads the highlighter, a long one takes its time.
        page.colors = await asyncio.to_thread(color, name.rpartition("/")[2], page.lines)
        if page.colors is not None and self.text.page is page:
            self.text.refresh()
