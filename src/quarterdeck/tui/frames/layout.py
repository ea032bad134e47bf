"""A screen whose layouts are compared with the layout before.

Textual's compositor makes a new map of the widgets whenever somebody asks where one is, also when
that is before the layout that was asked for. The layout then finds nothing changed: what moved is
not drawn where it is now, and what stood there stays.
"""

from typing import Any, TypeVar

from textual._compositor import Compositor, ReflowResult
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget

from quarterdeck.tui.frames.app import is_known

R = TypeVar("R")


class SettledCompositor(Compositor):
    """Keeps the map of the last layout, whatever was asked since."""

    def __init__(self) -> None:
        super().__init__()
        self._laid_out = self._full_map

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        """Part of `Compositor`."""
        self._full_map = self._laid_out
        result = super().reflow(parent, size)
        self._laid_out = self._full_map
        return result


class SettledLayout(Screen[R]):
    """Put in the place of `Screen` among a screen's bases."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if is_known():
            self._compositor = SettledCompositor()
