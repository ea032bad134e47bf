"""Selecting text in a libghostty terminal: the anchor is tracked, so scrolling does not move it."""

from typing import Any

import pyghostty

from quarterdeck.tui.terminal.core import SelectionKind
from quarterdeck.tui.terminal.ghostty_grid import VIEW, Grid, sized

ffi: Any = pyghostty.ffi
lib: Any = pyghostty.lib


class Selector:
    """The one selection of a terminal. Cells are given as they are in view."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._terminal = grid.terminal
        self._anchor: Any = None
        self._kind = SelectionKind.CELL
        self.active = False

    def begin(self, x: int, y: int, kind: SelectionKind) -> None:
        """Anchors a selection; a word or a line is selected at once."""
        self.clear()
        self._anchor = self._grid.track(x, y)
        self._kind = kind
        ref = self._grid.ref(x, y)
        if self._anchor is not None and ref is not None and kind is not SelectionKind.CELL:
            self._set(self._unit(ref, kind) or _cells(ref, ref))

    def change_kind(self, kind: SelectionKind, x: int, y: int) -> None:
        """Goes on from the same anchor to a cell, by other units."""
        self._kind = kind
        self.extend(x, y)

    def _unit(self, ref: Any, kind: SelectionKind) -> Any:
        """The word or line around a cell; null where there is none."""
        word = kind is SelectionKind.WORD
        options = sized(f"GhosttyTerminalSelect{'Word' if word else 'Line'}Options")
        options.ref = ref[0]
        select = lib.ghostty_terminal_select_word if word else lib.ghostty_terminal_select_line
        selection = sized("GhosttySelection")
        return None if select(self._terminal, options, selection) else selection

    def extend(self, x: int, y: int) -> None:
        """Selects from the anchor to a cell, whole words or lines if it began with one."""
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
        """Both units and what is between them."""
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
        """Goes on from the other end; where that is in the SCREEN, or null."""
        return None if self._anchor is None else self._grid.tracked(self._anchor)

    def anchor_at(self, x: int, y: int) -> None:
        """The selection stays, and is anchored at a cell in view from now on."""
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
        """Selects nothing and forgets the anchor."""
        self._forget_anchor()
        if self.active:
            lib.ghostty_terminal_set(self._terminal, lib.GHOSTTY_TERMINAL_OPT_SELECTION, ffi.NULL)
            self.active = False

    def text(self) -> str:
        """The selected text."""
        return plain_text(self._terminal, ffi.NULL) if self.active else ""

    def close(self) -> None:
        """Frees the anchor."""
        self.clear()


def _cells(start: Any, end: Any) -> Any:
    selection = sized("GhosttySelection")
    selection.start, selection.end = start[0], end[0]
    return selection


def plain_text(terminal: Any, selection: Any) -> str:
    """The text of a selection, the terminal's own when null: wrapped lines joined, blanks cut."""
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
