"""A screen whose layouts are compared with the layout before, and that can draw without waiting.

Textual's compositor makes a new map of the widgets whenever somebody asks where one is, also when
that is before the layout that was asked for. The layout then finds nothing changed: what moved is
not drawn where it is now, and what stood there stays.

Frames are 16 ms apart at least, so that changes come in one. What a key changed need not wait for that:
it is whole when the key is dealt with, and somebody looks for it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from textual import _callback, events
from textual._compositor import ReflowResult
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget

from quarterdeck.tui.frames.front import FrontCompositor
from quarterdeck.tui.textual_version import is_known

R = TypeVar("R")
Callback = Callable[..., Any]


class SettledCompositor(FrontCompositor):
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
        self._draws_next = False

    def draw_next(self) -> None:
        """The next change is drawn as soon as the screen has nothing else to do."""
        self._draws_next = True

    def call_after_refresh(self, callback: Callback, *args: Any, **kwargs: Any) -> bool:
        """Calls it behind the next frame, which may be that of the screen behind this one; not
        when this one has been closed by then, for its parts may be gone."""
        return super().call_after_refresh(self._if_open, partial(callback, *args, **kwargs))

    async def _if_open(self, callback: Callback) -> None:
        if self.display:  # as Textual calls what is neither hidden nor being removed
            await _callback.invoke(callback)

    async def _on_idle(self, event: events.Idle) -> None:
        await super()._on_idle(event)
        if self._draws_next and self._has_changed() and is_known():
            self._draws_next = False
            self._on_timer_update()

    def _has_changed(self) -> bool:
        """There is something to draw, and it may be drawn now."""
        if not self.is_current or self.app._batch_count:  # pyright: ignore[reportPrivateUsage]
            return False
        laid_out = self._layout_required or self._scroll_required or self._repaint_required
        return laid_out or bool(self._dirty_widgets)
