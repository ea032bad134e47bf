"""Vim's keys in a text area.

key --> VimEditor --> the difference, as one edit --> TextArea
"""

from collections.abc import Callable

from textual import events
from textual.widgets import TextArea
from textual.widgets.text_area import Location, Selection

from quarterdeck.tui.vim.editor import Mode, VimEditor


class VimKeys:
    """Keeps a `VimEditor` and a text area alike. `changed` is called when the mode is another."""

    def __init__(self, area: TextArea, editor: VimEditor, changed: Callable[[], None]) -> None:
        self._area = area
        self._editor = editor
        self._changed = changed
        self._words = ""
        self._shown: Selection | None = None
        """The selection that was made here last."""
        self.begin()

    @property
    def typing(self) -> bool:
        """Whether the mode is insert mode."""
        return self._editor.mode is Mode.INSERT

    @property
    def words(self) -> str:
        """The mode, and the keys of a command that is not complete."""
        return f"{self._editor.mode.value.upper()} {self._editor.pending}".rstrip()

    def begin(self) -> None:
        """Note that the text area has another text."""
        self._editor.begin(self._text)
        self._shown = None
        self._tell()

    def press(self, event: events.Key) -> bool:
        """Handle a key; return whether it is one of vim's."""
        key = event.character if event.is_printable and event.character else event.key
        if self._editor.mode is Mode.NORMAL and not self._editor.pending and key in ("up", "down"):
            return False  # by rows of the screen, and on to older prompts
        return self._press(key)

    def escape(self) -> bool:
        """Leave a mode or a command; False in normal mode."""
        return self._press("escape")

    def resume(self) -> None:
        """Return to insert mode where Escape ended it."""
        self._press("a")

    def copy_selection(self) -> bool:
        """Copy what is selected in a visual mode; return whether there is one."""
        return self._editor.selection is not None and self._press("y")

    def _press(self, key: str) -> bool:
        self._load()
        taken = self._editor.press(key)
        if taken:
            self._show()
            self._tell()
        return taken

    def _tell(self) -> None:
        if self._words != self.words:
            self._words = self.words
            self._changed()

    # text and selection, from the text area and to it

    @property
    def _text(self) -> str:
        return "\n".join(self._area.document.lines)

    def _load(self) -> None:
        text, (start, end) = self._text, self._area.selection
        if self._area.selection == self._shown and not self.typing:
            self._editor.load(text, self._editor.cursor)
            return
        self._editor.load(text, _offset(text, end))
        if not self.typing:
            self._editor.select(_offset(text, start), _offset(text, end))

    def _show(self) -> None:
        editor, old = self._editor, self._text
        if old != editor.text:
            self._replace(old, editor.text)
        self._area.selection = self._selection
        self._area.record_cursor_width()
        self._shown = self._area.selection
        if editor.selection is None:
            # The cursor of the text area steps over what is one thing for it.
            editor.cursor = _offset(editor.text, self._shown.end)

    def _replace(self, old: str, new: str) -> None:
        same = _alike(old, new)
        most = min(len(old), len(new)) - same
        after = _alike(old[: -most - 1 : -1], new[: -most - 1 : -1])
        start, end = _location(old, same), _location(old, len(old) - after)
        self._area.replace(new[same : len(new) - after], start, end)
        if self._text != new:  # it changed what is one thing for it as a whole
            self._editor.text = self._text
            self._editor.cursor = _offset(self._text, self._area.selection.end)

    @property
    def _selection(self) -> Selection:
        """What to show. The cell of the cursor looks selected, so it is left out."""
        editor = self._editor
        text, cursor = editor.text, _location(editor.text, editor.cursor)
        if editor.selection is None:
            return Selection.cursor(cursor)
        first, last = (_location(text, one) for one in editor.selection)
        lines = editor.mode is Mode.LINES
        if editor.backwards:
            return Selection(last, first if lines else cursor)
        return Selection(first, last if lines else cursor)


def _offset(text: str, location: Location) -> int:
    row, column = location
    return sum(len(line) + 1 for line in text.split("\n")[:row]) + column


def _location(text: str, offset: int) -> Location:
    return text.count("\n", 0, offset), offset - (text.rfind("\n", 0, offset) + 1)


def _alike(one: str, other: str) -> int:
    """Return how many characters are the same at the start of both."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))
