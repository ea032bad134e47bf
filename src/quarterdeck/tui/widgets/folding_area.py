"""A text area in which a long paste is one token, for the cursor and for whoever deletes."""

from rich.style import Style
from rich.text import Text
from textual.widgets.text_area import Edit, EditResult, Location, Selection

from quarterdeck.transcript.clean import clean
from quarterdeck.tui.widgets.naming_area import NamingArea
from quarterdeck.tui.widgets.pastes import Pastes, is_long

TOKEN = Style(italic=True, bold=True)


class FoldingArea(NamingArea):
    """`text` is what is shown; `written` what is meant, with all pastes in it."""

    pastes: Pastes

    def __init__(self, *, id: str | None = None) -> None:
        self.pastes = Pastes()
        super().__init__(id=id, show_line_numbers=False, soft_wrap=True, compact=False)

    @property
    def written(self) -> str:
        """The whole text."""
        return self.pastes.written(self.text)

    @property
    def selected_text(self) -> str:
        """Part of `TextArea`: what is copied is what is meant."""
        return self.pastes.written(super().selected_text)

    @property
    def paste_at_cursor(self) -> str | None:
        """The paste whose token the cursor touches, else the only one there is."""
        row, column = self.cursor_location
        for start, end, token in self.pastes.places(self.document.get_line(row)):
            if start <= column <= end:
                return self.pastes.text_of(token)
        found = {token for line in self.document.lines for _, _, token in self.pastes.places(line)}
        return self.pastes.text_of(found.pop()) if len(found) == 1 else None

    def load_text(self, text: str) -> None:
        """Part of `TextArea`."""
        super().load_text(self.pastes.shown(clean(text)))
        self.pastes.forget(self.text)

    def _replace_via_keyboard(
        self, insert: str, start: Location, end: Location
    ) -> EditResult | None:
        # Here, since both ways to paste come through it.
        if is_long(insert):
            insert = self.pastes.add(clean(insert))
        return super()._replace_via_keyboard(insert, start, end)

    def edit(self, edit: Edit) -> EditResult:
        """A token goes as a whole."""
        first, last = sorted((edit.from_location, edit.to_location))
        if first != last:
            edit.from_location = self._outside(first, after=False)
            edit.to_location = self._outside(last, after=True)
        return super().edit(edit)

    def validate_selection(self, selection: Selection) -> Selection:
        """The cursor steps over a token, whichever way it comes."""
        before = self.selection.end
        start, end = selection
        after = end >= before
        moved = self._outside(end, after=after)
        return Selection(moved if start == end else self._outside(start, after=not after), moved)

    def _outside(self, location: Location, *, after: bool) -> Location:
        row, column = location
        if row >= self.document.line_count:
            return location
        for start, end, _ in self.pastes.places(self.document.get_line(row)):
            if start < column < end:
                return row, end if after else start
        return location

    def get_line(self, line_index: int) -> Text:
        """Part of `TextArea`: tokens look like no text."""
        line = super().get_line(line_index)
        for start, end, _ in self.pastes.places(line.plain):
            line.stylize(TOKEN, start, end)
        return line
