"""Finds a reader's place again when the document is another one."""

from dataclasses import dataclass

from quarterdeck.store.changes_model import Numbered
from quarterdeck.tui.changes.document import Address, Document
from quarterdeck.tui.changes.model import Item, Kind, Section


@dataclass(frozen=True)
class Bookmark:
    """What the cursor was on. `row`: how far below the top of the window."""

    key: tuple[str, str]
    section: int
    item: int
    kind: Kind | None
    line: Numbered | None
    comment: str
    row: int

    @classmethod
    def of(cls, document: Document, address: Address, top: int) -> "Bookmark":
        """The place of an item."""
        if not document.has(address):
            return cls(("", ""), 0, 0, None, None, "", 0)
        section, item = document.placed[address.section].section, document.item(address)
        index = item.line if item.line >= 0 else item.partner
        return cls(
            section.key,
            address.section,
            address.item,
            item.kind,
            section.lines[index] if index >= 0 and section.lines else None,
            item.comment.key if item.comment else "",
            document.row_of(address) - top,
        )

    def is_in(self, document: Document) -> bool:
        """Whether its file is there."""
        return any(placed.section.key == self.key for placed in document.placed)

    def find(self, document: Document) -> Address:
        """The same item, else the nearest line of its file, else what is where its file was."""
        for number, placed in enumerate(document.placed):
            if placed.section.key == self.key:
                return document.clamp(Address(number, self._in(placed.section, placed.items)))
        return document.clamp(Address(self.section, 0))

    def _in(self, section: Section, items: list[Item]) -> int:
        if self.comment:
            found = (
                at for at, i in enumerate(items) if i.comment and i.comment.key == self.comment
            )
            return next(found, self.item)
        if self.line is None or self.kind not in {Kind.LINE, Kind.PAIR, Kind.HUNK}:
            return self.item
        wanted = self.line
        kinds = {Kind.HUNK} if self.kind == Kind.HUNK else {Kind.LINE, Kind.PAIR}
        best, least = self.item, None
        for at, item in enumerate(items):
            if item.kind not in kinds:
                continue
            # Of a line alone the partner has an item of its own.
            sides = {item.line, item.partner} if item.kind == Kind.PAIR else {item.line}
            for index in sides - {-1}:
                line = section.lines[index]
                away = abs((line.new or line.old) - (wanted.new or wanted.old))
                far = (line.text != wanted.text or line.sign != wanted.sign, away)
                if least is None or far < least:
                    best, least = at, far
        return best
