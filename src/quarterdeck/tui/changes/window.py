"""The visible part of the changes.

One widget for any number of files, painted by line.

    pane --show(Review)--> ChangesView -> Document (rows) -> Drawing (strips of what is seen)
    pane <--Moved

The cursor is on an item: a head, a line, a comment. It and the row that it is in stay where they are
when the changes are read again.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from quarterdeck.store.changes_comments import Comment, Lines, lines_of, whole_file
from quarterdeck.store.changes_diff import Numbered
from quarterdeck.store.review import Review
from quarterdeck.tui.actions import KeyContext
from quarterdeck.tui.changes.document import Document, DocumentSearch, ItemAddress
from quarterdeck.tui.changes.drawing import COMPONENTS, CSS, ChangesDrawing, Shades
from quarterdeck.tui.changes.model import DiffSection, Item, ItemKind, sections_of, visible
from quarterdeck.tui.panes.tabs import PaneKeys, pane_bindings
from quarterdeck.tui.text import fit, wrapped
from quarterdeck.tui.themes import part_style


@dataclass(frozen=True)
class Bookmark:
    """What the cursor was on. `row`: its distance from the top of the window."""

    key: tuple[str, str]
    section: int
    item: int
    kind: ItemKind | None
    line: Numbered | None
    comment: str
    row: int

    @classmethod
    def of(cls, document: Document, address: ItemAddress, top: int) -> "Bookmark":
        """Return the place of an item."""
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
        """Return whether its file exists."""
        return any(placed.section.key == self.key for placed in document.placed)

    def find(self, document: Document) -> ItemAddress:
        """Return the same item, else the nearest line of its file, else what replaced its file."""
        for number, placed in enumerate(document.placed):
            if placed.section.key == self.key:
                return document.clamp(ItemAddress(number, self._in(placed.section, placed.items)))
        return document.clamp(ItemAddress(self.section, 0))

    def _in(self, section: DiffSection, items: list[Item]) -> int:
        if self.comment:
            found = (
                at for at, i in enumerate(items) if i.comment and i.comment.key == self.comment
            )
            return next(found, self.item)
        if self.line is None or self.kind not in {ItemKind.LINE, ItemKind.PAIR, ItemKind.HUNK}:
            return self.item
        wanted = self.line
        kinds = {ItemKind.HUNK} if self.kind == ItemKind.HUNK else {ItemKind.LINE, ItemKind.PAIR}
        best, least = self.item, None
        for at, item in enumerate(items):
            if item.kind not in kinds:
                continue
            # The partner of a single line has its own item.
            sides = {item.line, item.partner} if item.kind == ItemKind.PAIR else {item.line}
            for index in sides - {-1}:
                line = section.lines[index]
                away = abs((line.new or line.old) - (wanted.new or wanted.old))
                far = (line.text != wanted.text or line.sign != wanted.sign, away)
                if least is None or far < least:
                    best, least = at, far
        return best


_KEPT = 500
"""Items whose strips are cached."""


class ChangesWindow(ScrollView, PaneKeys, can_focus=True):
    """Shows the changes of a `Review`."""

    COMPONENT_CLASSES: ClassVar[set[str]] = COMPONENTS
    DEFAULT_CSS = CSS
    BINDINGS: ClassVar[list[BindingType]] = [*pane_bindings(KeyContext.CHANGES)]

    empty: reactive[str] = reactive("")
    """Shown when there is nothing else."""

    class Moved(Message):
        """The cursor, or its item, has changed; `acted`: because of a user action."""

        def __init__(self, *, acted: bool) -> None:
            super().__init__()
            self.acted = acted

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._document = Document()
        self._shades = Shades(self, "changes")
        self._drawing = ChangesDrawing(self._shades)
        self._strips: OrderedDict[ItemAddress, list[Strip]] = OrderedDict()
        self._folded: dict[tuple[str, str], bool] = {}
        self._hidden: dict[tuple[str, str], frozenset[str]] = {}
        self._cursor = ItemAddress(0, 0)
        self._mark: ItemAddress | None = None
        self._lost: Bookmark | None = None
        self._finder = DocumentSearch(self._document)
        self._split = False

    # display

    def show(self, review: Review) -> None:
        """Show the current changes and comments; the reader stays at their line."""
        here = Bookmark.of(self._document, self._cursor, self.scroll_offset.y)
        bookmark = self._lost or here
        marked = self._mark and Bookmark.of(self._document, self._mark, 0)
        self._document.show(
            sections_of(review.repositories, review.shown_comments, self._folded, self._hidden)
        )
        # A file that is missing once, such as while its repository cannot be read, comes back.
        self._lost = None if bookmark.is_in(self._document) else bookmark
        self._drawing.forget()
        self._drawing.marked = frozenset(review.marked)
        self._finder.restart()
        self._mark = marked.find(self._document) if marked else None
        self._cursor = bookmark.find(self._document)
        self._laid_out(self._document_row(self._cursor) - bookmark.row)

    def on_resize(self) -> None:
        self._fit()

    def _fit(self) -> None:
        row = self._document_row(self._cursor) - self.scroll_offset.y
        here = Bookmark.of(self._document, self._cursor, 0)
        marked = self._mark and Bookmark.of(self._document, self._mark, 0)
        if self._document.resize(self.scrollable_content_region.width, split=self._split):
            self._cursor = here.find(self._document)
            self._mark = marked.find(self._document) if marked else None
            self._laid_out(self._document_row(self._cursor) - row)

    def _laid_out(self, top: int) -> None:
        self._strips.clear()
        self.virtual_size = Size(self._document.width, self._document.height)
        self.scroll_to(y=max(0, top), animate=False, force=True, immediate=True)
        self._reveal()
        self.refresh()
        self.post_message(self.Moved(acted=False))

    def _document_row(self, address: ItemAddress) -> int:
        return self._document.row_of(address) if self._document.has(address) else 0

    @property
    def wants_split(self) -> bool:
        """Whether side-by-side mode is requested, as soon as there is room."""
        return self._split

    @property
    def split(self) -> bool:
        """Whether old and new are side by side."""
        return self._document.split

    def show_split(self, split: bool) -> bool:
        """Switch between side-by-side and unified mode; return whether the result is as requested."""
        self._split = split
        self._fit()
        return self._document.split == split

    # where the reader is

    @property
    def item(self) -> Item | None:
        """The item under the cursor."""
        has = self._document.has(self._cursor)
        return self._document.item(self._cursor) if has else None

    @property
    def section(self) -> DiffSection | None:
        """The file or repository that it is in."""
        has = self._document.has(self._cursor)
        return self._document.placed[self._cursor.section].section if has else None

    @property
    def comment(self) -> Comment | None:
        """The comment under the cursor."""
        return self.item.comment if self.item is not None else None

    @property
    def marking(self) -> bool:
        """Whether several lines are being selected."""
        return self._mark is not None

    def chosen_lines(self) -> Lines | None:
        """Return the lines that a comment would be about; on the head of a file, all of it."""
        section, item = self.section, self.item
        if section is None or section.change is None:
            return None
        if item is not None and item.kind == ItemKind.FILE and not self.marking:
            return whole_file(section.repository.name, section.change.path)
        indices = sorted(
            {i for item in self._chosen() for i in (item.line, item.partner) if i >= 0}
            if self.split
            else {item.line for item in self._chosen()}
        )
        lines = [section.lines[index] for index in indices]
        return lines_of(section.repository.name, section.change.path, lines)

    def _chosen(self) -> list[Item]:
        """Return the lines between the mark and the cursor, or the one under the cursor."""
        first, last = self._range()
        items = self._document.placed[first.section].items[first.item : last.item + 1]
        return [item for item in items if item.kind in {ItemKind.LINE, ItemKind.PAIR}]

    def _range(self) -> tuple[ItemAddress, ItemAddress]:
        if self._mark is None or self._mark.section != self._cursor.section:
            return self._cursor, self._cursor
        return min(self._mark, self._cursor), max(self._mark, self._cursor)

    # where the cursor goes

    def _go(self, address: ItemAddress, *, near_top: bool = False) -> None:
        if not self._document.has(address):
            return
        if self._mark is not None and address.section != self._mark.section:
            return
        self._cursor, self._lost = address, None
        if near_top and not self._is_seen(address):
            self.scroll_to(
                y=max(0, self._document_row(address) - 2), animate=False, force=True, immediate=True
            )
        self._reveal()
        self.refresh()
        self.post_message(self.Moved(acted=True))

    def _is_seen(self, address: ItemAddress) -> bool:
        row = self._document_row(address) - self.scroll_offset.y
        return 0 <= row < self.size.height - 4

    def _reveal(self) -> None:
        if self.item is None:
            return
        row, top = self._document_row(self._cursor), self.scroll_offset.y
        last = row + self._document.height_of(self._cursor) - 1
        if row < top:
            top = row
        elif last >= top + self.size.height:
            top = min(row, last - self.size.height + 1)
        self.scroll_to(y=max(0, top), animate=False, force=True, immediate=True)

    # painting

    def notify_style_update(self) -> None:
        """Draw again with another theme."""
        super().notify_style_update()
        self._shades.reset()
        self._strips.clear()

    def render_line(self, y: int) -> Strip:
        """Part of `ScrollView`."""
        base = self.rich_style
        width = self.scrollable_content_region.width
        found = self._document.locate(y + self.scroll_offset.y)
        if found is None:
            return self._empty_line(y, width, base)
        address, row = found
        strips = self._drawn(address)
        strip = strips[min(row, len(strips) - 1)]
        bar = self._bar(address)
        if bar:
            strip = Strip.join([Strip([Segment("\u258c", bar)], 1), strip.crop(1)])
        return strip

    def _empty_line(self, y: int, width: int, base: Style) -> Strip:
        texts = wrapped(self.empty, width - 4)
        if self._document.height or not 1 <= y <= len(texts):
            return Strip.blank(width, base)
        style = base + part_style(self, "changes--empty")
        return Strip([Segment(fit(f"  {texts[y - 1]}", width), style)])

    def _bar(self, address: ItemAddress) -> Style | None:
        first, last = self._range()
        if self._mark is not None and first <= address <= last:
            return self._shades.get("chosen")
        if address == self._cursor:
            return self._shades.get("cursor" if self.has_focus else "note")
        return None

    def _drawn(self, address: ItemAddress) -> list[Strip]:
        strips = self._strips.get(address)
        if strips is None:
            placed = self._document.placed[address.section]
            strips = self._drawing.strips(placed, placed.items[address.item])
            self._strips[address] = strips
            if len(self._strips) > _KEPT:
                self._strips.popitem(last=False)
        return strips

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    @property
    def shown_text(self) -> str:
        """The text of the item under the cursor, for tests and messages."""
        section, item = self.section, self.item
        if section is None or item is None or item.line < 0:
            return ""
        return visible(section.lines[item.line].text) if section.lines else ""
