"""The widget that shows changes."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.events import Click
from textual.message import Message
from textual.widgets import TextArea

from quarterdeck.store.changes_comments import Comment
from quarterdeck.tui.actions import KeyContext, action_id_of
from quarterdeck.tui.changes.document import ItemAddress, is_file, is_hunk
from quarterdeck.tui.changes.model import DiffSection, Item, ItemKind, hunk_key
from quarterdeck.tui.changes.window import ChangesWindow
from quarterdeck.tui.kit.key_context import HasKeyContext


def text_of(section: DiffSection, chosen: Sequence[Item], comment: Comment | None) -> str:
    """Return a comment's text, the selected lines without their signs, or the whole difference of a file.

    Text for the clipboard is the file's own, so that it can be pasted.
    """
    if comment is not None:
        return comment.text
    if not chosen:
        return section.change.text if section.change is not None else ""
    indices = [_copied(item) for item in chosen]
    return "\n".join(section.lines[index].text for index in indices)


def _copied(item: Item) -> int:
    """Return the new side of a pair, when it has one."""
    if item.kind == ItemKind.PAIR:
        return item.partner if item.partner >= 0 else item.line
    return item.line


class ChangesView(ChangesWindow):
    """Shows the changes of a `Review`, with navigation."""

    ALLOW_SELECT = False  # dragging chooses lines
    _pressed: ItemAddress | None = None
    """Where the mouse was pressed, while it is."""
    _dragged = False
    """Whether the last press was dragged."""

    # moving

    def move(self, steps: int) -> None:
        """Note that the cursor now moves by items; while lines are selected it stays within the file."""
        if self.item is not None:
            self._go(self._document.move(self._cursor, steps))

    def page(self, direction: int) -> None:
        """Move by a window."""
        if self.item is None:
            return
        row = self._document_row(self._cursor) + direction * max(1, self.size.height - 2)
        found = self._document.locate(max(0, min(row, self._document.height - 1)))
        if found is not None:
            self._go(found[0])

    def edge(self, end: bool) -> None:
        """Go to the first or the last item."""
        far = ItemAddress(len(self._document.placed), 0) if end else ItemAddress(0, 0)
        target = self._document.clamp(far)
        if end and self._document.has(target):
            target = ItemAddress(
                target.section, len(self._document.placed[target.section].items) - 1
            )
        self._go(target)

    def next_file(self, step: int) -> None:
        """Go to the head of the next file, or of this one, or of the previous one."""
        self._jump(self._document.next_where(self._cursor, step, is_file))

    def next_hunk(self, step: int) -> None:
        """Go to the next changed place."""
        self._jump(self._document.next_where(self._cursor, step, is_hunk))

    def next_comment(self, step: int) -> None:
        """Go to the next comment."""
        self._jump(
            self._document.next_where(
                self._cursor, step, lambda section, item: item.kind == ItemKind.COMMENT
            )
        )

    def _jump(self, address: ItemAddress | None) -> None:
        if address is not None:
            self._mark = None
            self._go(address, near_top=True)

    # selecting and folding

    def mark(self) -> None:
        """Start selecting lines, or stop."""
        item = self.item
        if self._mark is not None:
            self._mark = None
        elif item is not None and item.kind in {ItemKind.LINE, ItemKind.PAIR}:
            self._mark = self._cursor
        self.refresh()
        self.post_message(self.Moved(acted=True))

    def unmark(self) -> bool:
        """Deselect all lines; return False when none were selected."""
        was, self._mark = self._mark is not None, None
        if was:
            self.refresh()
            self.post_message(self.Moved(acted=True))
        return was

    def fold(self) -> None:
        """Open or fold the file under the cursor, which moves to its head."""
        section = self.section
        if section is not None and section.change is not None:
            self._fold(self._cursor.section, not section.folded)

    def _fold(self, number: int, folded: bool) -> None:
        section = self._document.placed[number].section
        self._folded[section.key] = folded
        self._put(number, section.with_folded(folded))
        self._cursor = self._document.clamp(ItemAddress(number, 0))
        self._laid_out(self.scroll_offset.y)

    def fold_hunk(self) -> None:
        """Open or fold the hunk whose head is under the cursor."""
        section, item = self.section, self.item
        hunk = section.hunk_of(item.line) if section is not None and item is not None else None
        if section is not None and hunk is not None:
            self._hide(self._cursor.section, section.hidden ^ {hunk_key(hunk)})
            self._laid_out(self.scroll_offset.y)

    def _hide(self, number: int, hidden: frozenset[str]) -> None:
        section = self._document.placed[number].section
        self._hidden[section.key] = hidden
        self._put(number, section.with_hidden(hidden))

    def _put(self, number: int, section: DiffSection) -> None:
        self._document.put(number, section)
        self._document.measure()
        self._mark = self._lost = None
        self._finder.restart()

    def fold_all(self) -> None:
        """Fold all files; open them all when they are folded."""
        files = [p.section for p in self._document.placed if p.section.change is not None]
        folded = not all(section.folded for section in files)
        here = self._cursor.section
        for number, placed in enumerate(self._document.placed):
            if placed.section.change is not None:
                self._folded[placed.section.key] = folded
                self._document.put(number, placed.section.with_folded(folded))
        self._document.measure()
        self._mark = self._lost = None
        self._cursor = self._document.clamp(ItemAddress(here, 0))
        self._finder.restart()
        self._laid_out(self._document_row(self._cursor) - self.size.height // 3)

    # searching

    def search(self, wanted: str) -> int:
        """Search for a text, and go to the first match from the cursor on; return how many there are."""
        self._drawing.wanted = wanted
        self._strips.clear()
        count = self._finder.search(wanted)
        self.refresh()
        if count:
            self.next_match(1, here=True)
        return count

    def next_match(self, step: int, *, here: bool = False) -> None:
        """Go to the next or previous match, and open its file."""
        found = self._finder.next(self._cursor, step, here=here)
        if found is None:
            return
        number, index = found
        if index >= 0:
            self._open(number, index)
        self._mark = None
        self._go(self._finder.address(number, index), near_top=True)

    def _open(self, number: int, line: int) -> None:
        """Open what hides a line."""
        section = self._document.placed[number].section
        if section.folded:
            self._fold(number, folded=False)
        hunk = section.hunk_of(line)
        if hunk is not None and hunk_key(hunk) in section.hidden:
            self._hide(number, section.hidden - {hunk_key(hunk)})
            self._laid_out(self.scroll_offset.y)

    @property
    def place_of_match(self) -> tuple[int, int]:
        """The number of the match under the cursor, counted from one (0: none), and how many there are."""
        return self._finder.place(self._cursor)

    # copying

    def text_to_copy(self, *, whole: bool) -> str:
        """Return the selected lines, a comment, or the file's difference in git's format."""
        section = self.section
        if section is None:
            return ""
        return text_of(section, [] if whole else self._chosen(), None if whole else self.comment)

    # by mouse

    def _under(self, event: events.MouseEvent) -> ItemAddress | None:
        found = self._document.locate(event.y + self.scroll_offset.y)
        return found[0] if found else None

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._pressed, self._dragged = self._under(event), False
        self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Select the lines over which the mouse is dragged."""
        found = self._under(event)
        if self._pressed is None or found is None or (found == self._pressed and not self._dragged):
            return
        if not self._dragged:
            self._mark, self._dragged = None, True
            self._go(self._pressed)
            self.mark()
        self._go(found)
        if self._mark is None:  # the press was on a head
            self.mark()

    def on_mouse_up(self) -> None:
        self.release_mouse()
        self._pressed = None

    def on_click(self, event: Click) -> None:
        """Move the cursor; clicking the head under the cursor opens or folds it."""
        found = self._document.locate(event.y + self.scroll_offset.y)
        if found is None or self._dragged:
            return
        again = found[0] == self._cursor
        self._go(found[0])
        kind = self.item.kind if self.item is not None and (again or event.x < 3) else None
        if kind == ItemKind.FILE:
            self.fold()
        elif kind == ItemKind.HUNK:
            self.fold_hunk()


MOST_LINES = 8

Purpose = Literal["comment", "summary", "search", "commit"]
_PLACES = {
    "comment": KeyContext.COMMENT,
    "summary": KeyContext.SUMMARY,
    "search": KeyContext.SEARCH,
    "commit": KeyContext.COMMIT,
}


class ReviewField(TextArea, HasKeyContext):
    """A few lines below the changes; hidden until it is needed."""

    DEFAULT_CSS = """
    ReviewField {
        display: none;
        height: 3;
        min-height: 3;
        border: round $panel-lighten-2;
        padding: 0 1;
        background: $background;
        border-title-color: $text-warning;
        border-subtitle-color: $text-muted;
        &:focus { border: round $border; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = []

    class Done(Message):
        """Enter, or Escape (`left`): the text is final, or not yet."""

        def __init__(self, purpose: Purpose, text: str, *, left: bool) -> None:
            super().__init__()
            self.purpose: Purpose = purpose
            self.text = text
            self.left = left

    def __init__(self) -> None:
        super().__init__(show_line_numbers=False, soft_wrap=True, compact=False)
        self.cursor_blink = False
        self.highlight_cursor_line = False
        self.purpose: Purpose = "comment"

    @property
    def place(self) -> KeyContext:
        """Part of `HasKeyContext`."""
        return _PLACES[self.purpose]

    def open(self, purpose: Purpose, title: str, text: str, note: str = "") -> None:
        """Show it with a text, and focus it."""
        self.purpose = purpose
        self.text = text
        self.border_title, self.border_subtitle = Text(title), Text(note)
        self.move_cursor(self.document.end)
        self.display = True
        self.screen.set_focus(self)

    def close(self) -> None:
        """Hide the field and empty it."""
        self.display = False
        self.text = ""

    def on_text_area_changed(self) -> None:
        lines = max(1, min(MOST_LINES, self.wrapped_document.height))
        if self.styles.height is None or self.styles.height.value != lines + 2:
            self.styles.height = lines + 2

    async def _on_key(self, event: events.Key) -> None:
        match action_id_of(self.place, event.key).rpartition(".")[2]:
            case "keep" | "send" | "go" | "leave" as meant:
                self._stop(event)
                self.post_message(self.Done(self.purpose, self.text, left=meant == "leave"))
            case "newline":
                self._stop(event)
                self.insert("\n")
            case _ if self.purpose == "search" and self._would_break(event.key):
                self._stop(event)
            case _:
                await super()._on_key(event)

    @staticmethod
    def _would_break(key: str) -> bool:
        return key == "enter" or bool(action_id_of(KeyContext.COMMENT, key))

    def _stop(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
