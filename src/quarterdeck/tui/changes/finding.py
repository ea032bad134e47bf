"""Search in all lines and paths, including folded ones."""

from bisect import bisect_left, bisect_right

from quarterdeck.tui.changes.document import Document, ItemAddress
from quarterdeck.tui.changes.model import ItemKind
from quarterdeck.tui.changes.visible import visible
from quarterdeck.tui.kit.spans import spans_in

Match = tuple[int, int]
"""A section, and the index of a line in it; -1 is its head."""


class DocumentSearch:
    """The matches of a text in a document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._text = ""
        self._found: list[Match] | None = None

    def restart(self) -> None:
        """Note that the document has changed; the search text is the same."""
        self._found = None

    def search(self, wanted: str) -> int:
        """Return how many lines contain a text."""
        self._text = wanted
        self._found = None
        return len(self._matches())

    def _matches(self) -> list[Match]:
        if self._found is None:
            self._found = self._look() if self._text else []
        return self._found

    def _look(self) -> list[Match]:
        found: list[Match] = []
        wanted = self._text
        for number, placed in enumerate(self._document.placed):
            section = placed.section
            if section.change is None:
                continue
            if spans_in(section.change.path, wanted):
                found.append((number, -1))
            found += [
                (number, index)
                for index, line in enumerate(section.lines)
                if spans_in(line.text, wanted) and spans_in(visible(line.text), wanted)
            ]
        return found

    def next(self, start: ItemAddress, step: int, *, here: bool = False) -> Match | None:
        """Return the next match, wrapping around at the end."""
        matches = self._matches()
        if not matches:
            return None
        at = self._match_at(start)
        if step > 0:
            position = bisect_left(matches, at) if here else bisect_right(matches, at)
        else:
            position = bisect_left(matches, at) - 1
        return matches[position % len(matches)]

    def _match_at(self, address: ItemAddress) -> Match:
        placed = self._document.placed[address.section]
        for item in placed.items[address.item :]:
            if item.kind in {ItemKind.LINE, ItemKind.PAIR}:
                last = max(item.line, item.partner) if item.kind == ItemKind.PAIR else item.line
                return address.section, last
            if item.kind == ItemKind.FILE:
                break
        head = placed.items[address.item].kind == ItemKind.FILE
        return address.section, -1 if head else len(placed.section.lines)

    def address(self, number: int, index: int) -> ItemAddress:
        """Return the item that shows a match."""
        for at, item in enumerate(self._document.placed[number].items):
            shows = item.kind in {ItemKind.LINE, ItemKind.PAIR} and index in (
                item.line,
                item.partner,
            )
            # A changed line's partner has its own item, unless both are in one.
            if shows and (item.kind == ItemKind.PAIR or item.line == index):
                return ItemAddress(number, at)
        return ItemAddress(number, 0)

    def place(self, cursor: ItemAddress) -> tuple[int, int]:
        """Return the number of an item's match, counted from 1, and how many there are."""
        matches = self._matches()
        if not matches or not self._document.has(cursor):
            return 0, len(matches)
        item = self._document.item(cursor)
        own = {item.line, item.partner} if item.kind == ItemKind.PAIR else {item.line}
        if item.kind == ItemKind.FILE:
            own = {-1}
        for index in sorted(own):
            at = bisect_left(matches, (cursor.section, index))
            if at < len(matches) and matches[at] == (cursor.section, index):
                return at + 1, len(matches)
        return 0, len(matches)
