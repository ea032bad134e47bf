"""Sends only changed cells to the terminal.

Textual writes every cell of each dirty region, or of the whole screen after a layout, whatever the
terminal already shows. `DiffedFrames` stands between its compositor and its driver:

    compositor -> LayoutUpdate / ChopsUpdate -> strips -> cells -> changed runs -> driver

Rows that only moved are moved by the terminal (`scrolls`) where that is less, and only on terminals
with synchronized output: what stands beside them is seen neither moving nor being mended.

`SettledLayout` mends a screen's layouts, which Textual may take for drawn when they are not, and
draws no widget that is behind another (`front`).

It reaches into private parts of one exact version of Textual; with any other version, in inline and
headless mode, and with `QD_FRAMES=off`, it stays out of the way. What the terminal shows counts as
unknown at the start, after every resize (also one to the same size), after the program was
suspended, and after `redraw`.
"""

from quarterdeck.tui.frames.app import DiffedFrames
from quarterdeck.tui.frames.layout import SettledLayout

__all__ = ["DiffedFrames", "SettledLayout"]
