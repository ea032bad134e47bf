"""What a person does with the differences that are shown: moves, folds, searches, chooses, copies."""

from textual.events import Click

from quarterdeck.tui.changes.document import Address, is_file, is_hunk
from quarterdeck.tui.changes.model import Kind, Section, hunk_key
from quarterdeck.tui.changes.telling import text_of
from quarterdeck.tui.changes.window import ChangesWindow


class ChangesView(ChangesWindow):
    """Shows the changes of a `Review`, and is moved about in."""

    # moving

    def move(self, steps: int) -> None:
        """The cursor goes on by items; a file's end holds it while lines are chosen."""
        if self.item is not None:
            self._go(self._document.move(self._cursor, steps))

    def page(self, direction: int) -> None:
        """By what is seen."""
        if self.item is None:
            return
        row = self._document_row(self._cursor) + direction * max(1, self.size.height - 2)
        found = self._document.locate(max(0, min(row, self._document.height - 1)))
        if found is not None:
            self._go(found[0])

    def edge(self, end: bool) -> None:
        """To the first or the last item."""
        far = Address(len(self._document.placed), 0) if end else Address(0, 0)
        target = self._document.clamp(far)
        if end and self._document.has(target):
            target = Address(target.section, len(self._document.placed[target.section].items) - 1)
        self._go(target)

    def next_file(self, step: int) -> None:
        """To the head of the next file, or of this one, or of the one before."""
        self._jump(self._document.next_where(self._cursor, step, is_file))

    def next_hunk(self, step: int) -> None:
        """To the next place where something changed."""
        self._jump(self._document.next_where(self._cursor, step, is_hunk))

    def next_comment(self, step: int) -> None:
        """To the next comment."""
        self._jump(
            self._document.next_where(
                self._cursor, step, lambda section, item: item.kind == Kind.COMMENT
            )
        )

    def _jump(self, address: Address | None) -> None:
        if address is not None:
            self._mark = None
            self._go(address, near_top=True)

    # choosing and folding

    def mark(self) -> None:
        """Begins to choose lines, or ends it."""
        item = self.item
        if self._mark is not None:
            self._mark = None
        elif item is not None and item.kind in {Kind.LINE, Kind.PAIR}:
            self._mark = self._cursor
        self.refresh()
        self.post_message(self.Moved(acted=True))

    def unmark(self) -> bool:
        """Chooses no lines any more; False when none were."""
        was, self._mark = self._mark is not None, None
        if was:
            self.refresh()
            self.post_message(self.Moved(acted=True))
        return was

    def fold(self) -> None:
        """Opens or folds the file under the cursor, which goes to its head."""
        section = self.section
        if section is not None and section.change is not None:
            self._fold(self._cursor.section, not section.folded)

    def _fold(self, number: int, folded: bool) -> None:
        section = self._document.placed[number].section
        self._folded[section.key] = folded
        self._put(number, section.with_folded(folded))
        self._cursor = self._document.clamp(Address(number, 0))
        self._laid_out(self.scroll_offset.y)

    def fold_hunk(self) -> None:
        """Opens or folds the hunk whose head is under the cursor."""
        section, item = self.section, self.item
        hunk = section.hunk_of(item.line) if section is not None and item is not None else None
        if section is not None and hunk is not None:
            self._hide(self._cursor.section, section.hidden ^ {hunk_key(hunk)})
            self._laid_out(self.scroll_offset.y)

    def _hide(self, number: int, hidden: frozenset[str]) -> None:
        section = self._document.placed[number].section
        self._hidden[section.key] = hidden
        self._put(number, section.with_hidden(hidden))

    def _put(self, number: int, section: Section) -> None:
        self._document.put(number, section)
        self._document.measure()
        self._mark = self._lost = None
        self._finder.restart()

    def fold_all(self) -> None:
        """Folds all files; opens them all when they are."""
        files = [p.section for p in self._document.placed if p.section.change is not None]
        folded = not all(section.folded for section in files)
        here = self._cursor.section
        for number, placed in enumerate(self._document.placed):
            if placed.section.change is not None:
                self._folded[placed.section.key] = folded
                self._document.put(number, placed.section.with_folded(folded))
        self._document.measure()
        self._mark = self._lost = None
        self._cursor = self._document.clamp(Address(here, 0))
        self._finder.restart()
        self._laid_out(self._document_row(self._cursor) - self.size.height // 3)

    # searching

    def search(self, wanted: str) -> int:
        """Shows where a text is, and goes to the first place from the cursor on; says how many."""
        self._drawing.wanted = wanted
        self._strips.clear()
        count = self._finder.search(wanted)
        self.refresh()
        if count:
            self.next_match(1, here=True)
        return count

    def next_match(self, step: int, *, here: bool = False) -> None:
        """To the next or the last place where the text is; its file is opened."""
        found = self._finder.next(self._cursor, step, here=here)
        if found is None:
            return
        number, index = found
        if index >= 0:
            self._open(number, index)
        self._mark = None
        self._go(self._finder.address(number, index), near_top=True)

    def _open(self, number: int, line: int) -> None:
        """What hides a line is opened."""
        section = self._document.placed[number].section
        if section.folded:
            self._fold(number, folded=False)
        hunk = section.hunk_of(line)
        if hunk is not None and hunk_key(hunk) in section.hidden:
            self._hide(number, section.hidden - {hunk_key(hunk)})
            self._laid_out(self.scroll_offset.y)

    @property
    def place_of_match(self) -> tuple[int, int]:
        """Which match the cursor is on, counted from one (0: on none), and how many there are."""
        return self._finder.place(self._cursor)

    # copying

    def text_to_copy(self, *, whole: bool) -> str:
        """The chosen lines, a comment, or the file's difference as git tells it."""
        section = self.section
        if section is None:
            return ""
        return text_of(section, [] if whole else self._chosen(), None if whole else self.comment)

    def on_click(self, event: Click) -> None:
        """Moves the cursor; a head that has it already is opened or folded."""
        found = self._document.locate(event.y + self.scroll_offset.y)
        if found is None:
            return
        again = found[0] == self._cursor
        self._go(found[0])
        kind = self.item.kind if self.item is not None and (again or event.x < 3) else None
        if kind == Kind.FILE:
            self.fold()
        elif kind == Kind.HUNK:
            self.fold_hunk()
