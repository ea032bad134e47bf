"""Searches all lines and paths, also of what is folded."""

import re
from bisect import bisect_left, bisect_right

from quarterdeck.tui.changes.document import Address, Document
from quarterdeck.tui.changes.model import Kind
from quarterdeck.tui.changes.pieces import case_flags
from quarterdeck.tui.changes.visible import visible

Match = tuple[int, int]
"""A section, and the index of a line in it; -1 is its head."""


class Finder:
    """The places of one text in a document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._wanted = ""
        self._found: list[Match] | None = None

    def restart(self) -> None:
        """The document is another one; what is searched for is the same."""
        self._found = None

    def search(self, wanted: str) -> int:
        """How many lines hold a text."""
        self._wanted = wanted
        self._found = None
        return len(self._matches())

    def _matches(self) -> list[Match]:
        if self._found is None:
            self._found = self._look() if self._wanted else []
        return self._found

    def _look(self) -> list[Match]:
        found: list[Match] = []
        pattern = re.compile(re.escape(self._wanted), case_flags(self._wanted))
        for number, placed in enumerate(self._document.placed):
            section = placed.section
            if section.change is None:
                continue
            if pattern.search(section.change.path):
                found.append((number, -1))
            found += [
                (number, index)
                for index, line in enumerate(section.lines)
                if pattern.search(line.text) and pattern.search(visible(line.text))
            ]
        return found

    def next(self, start: Address, step: int, *, here: bool = False) -> Match | None:
        """The next place, from the other end when there is none behind it."""
        matches = self._matches()
        if not matches:
            return None
        at = self._match_at(start)
        if step > 0:
            position = bisect_left(matches, at) if here else bisect_right(matches, at)
        else:
            position = bisect_left(matches, at) - 1
        return matches[position % len(matches)]

    def _match_at(self, address: Address) -> Match:
        placed = self._document.placed[address.section]
        for item in placed.items[address.item :]:
            if item.kind in {Kind.LINE, Kind.PAIR}:
                last = max(item.line, item.partner) if item.kind == Kind.PAIR else item.line
                return address.section, last
            if item.kind == Kind.FILE:
                break
        head = placed.items[address.item].kind == Kind.FILE
        return address.section, -1 if head else len(placed.section.lines)

    def address(self, number: int, index: int) -> Address:
        """The item that shows a match."""
        for at, item in enumerate(self._document.placed[number].items):
            shows = item.kind in {Kind.LINE, Kind.PAIR} and index in (item.line, item.partner)
            # A changed line's partner has an item of its own, unless both stand in one.
            if shows and (item.kind == Kind.PAIR or item.line == index):
                return Address(number, at)
        return Address(number, 0)

    def place(self, cursor: Address) -> tuple[int, int]:
        """Which match an item is, from one, and how many there are."""
        matches = self._matches()
        if not matches or not self._document.has(cursor):
            return 0, len(matches)
        item = self._document.item(cursor)
        own = {item.line, item.partner} if item.kind == Kind.PAIR else {item.line}
        if item.kind == Kind.FILE:
            own = {-1}
        for index in sorted(own):
            at = bisect_left(matches, (cursor.section, index))
            if at < len(matches) and matches[at] == (cursor.section, index):
                return at + 1, len(matches)
        return 0, len(matches)
