"""Sends only changed cells to the terminal.

Textual writes every cell of each dirty region, or of the whole screen after a layout, whatever the
terminal already shows. `DiffedFrames` is between its compositor and its driver:

    compositor -> LayoutUpdate / ChopsUpdate -> strips -> cells -> changed runs -> driver

Rows that only moved are moved by the terminal (`scrolls`) where that is shorter, and only on terminals
with synchronized output, so that intermediate states next to them are never visible.

Frames are dropped, not queued, while the terminal is busy with earlier ones (`pace`), and streamed text has a
budget of bytes.

`SettledLayout` corrects a screen's layouts, which Textual may believe to be drawn when they are not,
and draws no widget that is covered by another (`front`).

It uses private parts of one exact version of Textual; with any other version, in inline and
headless mode, and with `QD_FRAMES=off`, it does nothing. What the terminal shows counts as
unknown at the start, after every resize (also one to the same size), after the program was
suspended, and after `redraw`.
"""

from quarterdeck.tui.frames.app import DiffedFrames
from quarterdeck.tui.frames.layout import SettledLayout
from quarterdeck.tui.frames.pace import pacing_of

__all__ = ["DiffedFrames", "SettledLayout", "pacing_of"]
