"""Selecting text in a libghostty terminal: the anchor is tracked, so scrolling does not move it."""

from typing import Any

import pyghostty

from quarterdeck.tui.terminal.core import SelectionKind

ffi: Any = pyghostty.ffi
lib: Any = pyghostty.lib


def _sized(name: str) -> Any:
    return pyghostty.core.init_sized(name)


class Selector:
    """The one selection of a terminal. Cells are given as they are in view."""

    def __init__(self, terminal: Any) -> None:
        self._terminal = terminal
        self._anchor: Any = None
        self._track: Any = ffi.cast(
            "GhosttyResult(*)(GhosttyTerminal, GhosttyPointS, GhosttyTrackedGridRef*)",
            ffi.addressof(lib, "ghostty_terminal_grid_ref_track"),
        )
        self._locate: Any = ffi.cast(
            "GhosttyResult(*)(GhosttyTerminal, GhosttyPointS, GhosttyGridRef*)",
            ffi.addressof(lib, "ghostty_terminal_grid_ref"),
        )
        self.active = False

    def begin(self, x: int, y: int, kind: SelectionKind) -> None:
        """Anchors a selection; a word or a line is selected at once."""
        self.clear()
        anchor = ffi.new("GhosttyTrackedGridRef*")
        if self._track(self._terminal, self._point(x, y), anchor):
            return
        self._anchor = anchor[0]
        if kind is not SelectionKind.CELL:
            self._select_unit(x, y, kind)

    def _select_unit(self, x: int, y: int, kind: SelectionKind) -> None:
        selection = _sized("GhosttySelection")
        word = kind is SelectionKind.WORD
        options = _sized(f"GhosttyTerminalSelect{'Word' if word else 'Line'}Options")
        ref = self._ref(x, y)
        if ref is None:
            return
        options.ref = ref[0]
        select = lib.ghostty_terminal_select_word if word else lib.ghostty_terminal_select_line
        if not select(self._terminal, options, selection):
            self._set(selection)

    def extend(self, x: int, y: int) -> None:
        """Selects from the anchor to a cell."""
        if self._anchor is None:
            return
        start, end = _sized("GhosttyGridRef"), self._ref(x, y)
        if end is None or lib.ghostty_tracked_grid_ref_snapshot(self._anchor, start):
            return
        selection = _sized("GhosttySelection")
        selection.start, selection.end = start[0], end[0]
        self._set(selection)

    def _set(self, selection: Any) -> None:
        failed = lib.ghostty_terminal_set(
            self._terminal, lib.GHOSTTY_TERMINAL_OPT_SELECTION, selection
        )
        self.active = not failed

    def clear(self) -> None:
        """Selects nothing and forgets the anchor."""
        if self._anchor is not None:
            lib.ghostty_tracked_grid_ref_free(self._anchor)
            self._anchor = None
        if self.active:
            lib.ghostty_terminal_set(self._terminal, lib.GHOSTTY_TERMINAL_OPT_SELECTION, ffi.NULL)
            self.active = False

    def text(self) -> str:
        """The selected text."""
        if not self.active:
            return ""
        options = _sized("GhosttyTerminalSelectionFormatOptions")
        options.emit = lib.GHOSTTY_FORMATTER_FORMAT_PLAIN
        options.unwrap, options.trim, options.selection = True, True, ffi.NULL
        out = ffi.new("uint8_t**")
        size = ffi.new("size_t*")
        failed = lib.ghostty_terminal_selection_format_alloc(
            self._terminal, ffi.NULL, options[0], out, size
        )
        if failed:
            return ""
        text: bytes = ffi.buffer(out[0], size[0])[:]
        lib.ghostty_free(ffi.NULL, out[0], size[0])
        return text.decode("utf-8", "replace")

    def close(self) -> None:
        """Frees the anchor."""
        self.clear()

    def _point(self, x: int, y: int) -> Any:
        point = ffi.new("GhosttyPointS*")
        point.tag = lib.GHOSTTY_POINT_TAG_VIEWPORT
        point.value.x, point.value.y = x, y
        return point[0]

    def _ref(self, x: int, y: int) -> Any:
        ref = _sized("GhosttyGridRef")
        return None if self._locate(self._terminal, self._point(x, y), ref) else ref
