"""Selections and links in a libghostty terminal.

The anchor of a selection is tracked, so scrolling does not move it. Links are those that programs
create (OSC 8), and addresses in the text.
"""

from typing import Any

import pyghostty

from quarterdeck.tui.addresses import ADDRESS, cut_address
from quarterdeck.tui.terminal.core import SelectionKind
from quarterdeck.tui.terminal.ghostty_grid import (
    SCREEN,
    VIEW,
    Grid,
    Place,
    is_linked,
    row_text,
    sized,
)

ffi: Any = pyghostty.ffi
lib: Any = pyghostty.lib


class Selector:
    """The one selection of a terminal. Cells are given as positions in view."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._terminal = grid.terminal
        self._anchor: Any = None
        self._kind = SelectionKind.CELL
        self.active = False

    def begin(self, x: int, y: int, kind: SelectionKind) -> None:
        """Anchor a selection; a word or a line is selected at once."""
        self.clear()
        self._anchor = self._grid.track(x, y)
        self._kind = kind
        ref = self._grid.ref(x, y)
        if self._anchor is not None and ref is not None and kind is not SelectionKind.CELL:
            self._set(self._unit(ref, kind) or _cells(ref, ref))

    def change_kind(self, kind: SelectionKind, x: int, y: int) -> None:
        """Extend from the same anchor to a cell, by other units."""
        self._kind = kind
        self.extend(x, y)

    def _unit(self, ref: Any, kind: SelectionKind) -> Any:
        """Return the word or line around a cell; None where there is none."""
        word = kind is SelectionKind.WORD
        options = sized(f"GhosttyTerminalSelect{'Word' if word else 'Line'}Options")
        options.ref = ref[0]
        select = lib.ghostty_terminal_select_word if word else lib.ghostty_terminal_select_line
        selection = sized("GhosttySelection")
        return None if select(self._terminal, options, selection) else selection

    def extend(self, x: int, y: int) -> None:
        """Select from the anchor to a cell, whole words or lines if it started with one."""
        if self._anchor is None:
            return
        start, end = self._grid.snapshot(self._anchor), self._grid.ref(x, y)
        if start is None or end is None:
            return
        if self._kind is SelectionKind.CELL:
            self._set(_cells(start, end))
        else:
            self._set(self._spanned(start, end))

    def _spanned(self, start: Any, end: Any) -> Any:
        """Return both units and the text between them."""
        ends: list[tuple[tuple[int, int], Any]] = []
        for ref in (start, end):
            unit = self._unit(ref, self._kind) or _cells(ref, ref)
            for one in (
                ffi.new("GhosttyGridRef*", unit.start),
                ffi.new("GhosttyGridRef*", unit.end),
            ):
                x, y = self._grid.place(one) or (0, 0)
                ends.append(((y, x), one))
        ends.sort(key=lambda one: one[0])
        return _cells(ends[0][1], ends[-1][1])

    def swap(self) -> tuple[int, int] | None:
        """Return the position of the anchor in the SCREEN, or None."""
        return None if self._anchor is None else self._grid.tracked(self._anchor)

    def anchor_at(self, x: int, y: int) -> None:
        """Note that the selection stays, and is anchored at a cell in view from now on."""
        anchor = self._grid.track(x, y, VIEW)
        if anchor is not None:
            self._forget_anchor()
            self._anchor = anchor

    def _set(self, selection: Any) -> None:
        failed = lib.ghostty_terminal_set(
            self._terminal, lib.GHOSTTY_TERMINAL_OPT_SELECTION, selection
        )
        self.active = not failed

    def _forget_anchor(self) -> None:
        if self._anchor is not None:
            self._grid.untrack(self._anchor)
            self._anchor = None

    def clear(self) -> None:
        """Clear the selection and forget the anchor."""
        self._forget_anchor()
        if self.active:
            lib.ghostty_terminal_set(self._terminal, lib.GHOSTTY_TERMINAL_OPT_SELECTION, ffi.NULL)
            self.active = False

    def text(self) -> str:
        """Return the selected text."""
        return plain_text(self._terminal, ffi.NULL) if self.active else ""

    def close(self) -> None:
        """Free the anchor."""
        self.clear()


def _cells(start: Any, end: Any) -> Any:
    selection = sized("GhosttySelection")
    selection.start, selection.end = start[0], end[0]
    return selection


def plain_text(terminal: Any, selection: Any) -> str:
    """Return the text of a selection, the terminal's own when None: wrapped lines joined, blanks cut."""
    options = sized("GhosttyTerminalSelectionFormatOptions")
    options.emit = lib.GHOSTTY_FORMATTER_FORMAT_PLAIN
    options.unwrap, options.trim, options.selection = True, True, selection
    out = ffi.new("uint8_t**")
    size = ffi.new("size_t*")
    failed = lib.ghostty_terminal_selection_format_alloc(terminal, ffi.NULL, options[0], out, size)
    if failed:
        return ""
    text: bytes = ffi.buffer(out[0], size[0])[:]
    lib.ghostty_free(ffi.NULL, out[0], size[0])
    return text.decode("utf-8", "replace")


LINK_CHARACTERS = 4096
ROWS_SEARCHED = 2000
_BOUNDARIES = " \t\"'<>|`{}\N{BOX DRAWINGS LIGHT VERTICAL}\N{BOX DRAWINGS HEAVY VERTICAL}"


class Links:
    """The links of one terminal."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._boundaries = ffi.new("uint32_t[]", [0, *map(ord, _BOUNDARIES)])

    def at(self, ref: Any) -> str:
        """Return the link at a cell, or an empty text."""
        return (
            self._grid.uri(ref)[:LINK_CHARACTERS] or cut_address(self._word(ref))[:LINK_CHARACTERS]
        )

    def _word(self, ref: Any) -> str:
        options = sized("GhosttyTerminalSelectWordOptions")
        options.ref = ref[0]
        options.boundary_codepoints = self._boundaries
        options.boundary_codepoints_len = len(self._boundaries)
        selection = sized("GhosttySelection")
        if lib.ghostty_terminal_select_word(self._grid.terminal, options, selection):
            return ""
        return plain_text(self._grid.terminal, selection)

    def next(self, place: Place, step: int, size: tuple[int, int]) -> Place | None:
        """Return the start of the next link, older with -1 and newer with 1; `size`: columns and rows."""
        x, y = place
        cols, total = size
        for row in range(y, max(-1, min(y + step * ROWS_SEARCHED, total)), step):
            starts = self._starts(row, cols)
            if row == y:
                starts = [start for start in starts if (start - x) * step > 0]
            if starts:
                return starts[0 if step > 0 else -1], row
        return None

    def _starts(self, y: int, cols: int) -> list[int]:
        raw = self._grid.cells(y, cols)
        starts = {found.start() for found in ADDRESS.finditer(row_text(raw))}
        uri = ""
        for x, cell in enumerate(raw):
            if not is_linked(cell):
                uri = ""
                continue
            ref = self._grid.ref(x, y, SCREEN)
            here = self._grid.uri(ref) if ref is not None else ""
            if here != uri:
                starts.add(x)
            uri = here
        return sorted(starts)
