"""The differ as a part of the app."""

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS, RenderableType
from textual import events
from textual._ansi_sequences import SYNC_END, SYNC_START
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.driver import Driver
from textual.screen import Screen

from quarterdeck.tui.frames.cells import CellMaker, Pens
from quarterdeck.tui.frames.graphics import Pictures
from quarterdeck.tui.frames.pace import Pacing
from quarterdeck.tui.frames.screen import ShownScreen, Update, placed_strips
from quarterdeck.tui.textual_ext.driver import OutletDriver, is_known

# Rule sets are put into a set for each widget that is styled, hundreds at a time; Textual's own hash is
# the same but written in Python.
RuleSet.__hash__ = object.__hash__


class KeptStylesheet(Stylesheet):
    """Caches all parsed sources, for each set of variables.

    Textual caches 64 parsed sources, and the cockpit has more: each widget class is one. Beyond that
    number, every dialog that adds a new class would parse all of them again.
    """

    _of_variables: ClassVar[dict[frozenset[tuple[str, str]], dict[Any, list[RuleSet]]]] = {}
    _parsed: dict[Any, list[RuleSet]]

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self._choose(variables or {})

    def set_variables(self, variables: dict[str, str]) -> None:
        super().set_variables(variables)
        self._choose(variables)

    def reparse(self) -> None:
        """Parse again here; the base parses with a stylesheet that has parsed nothing yet."""
        self.parse()

    def _choose(self, variables: dict[str, str]) -> None:
        self._parsed = self._of_variables.setdefault(frozenset(variables.items()), {})

    def _parse_rules(
        self,
        css: str,
        read_from: tuple[str, str],
        is_default_rules: bool = False,
        tie_breaker: int = 0,
        scope: str = "",
    ) -> list[RuleSet]:
        key = (css, read_from, is_default_rules, tie_breaker, scope)
        if key not in self._parsed:
            self._parsed[key] = super()._parse_rules(*key)
        return self._parsed[key]


SWITCH: Final = "QD_FRAMES"
"""Environment variable: `off` leaves Textual's output as it is."""


def is_possible() -> bool:
    """Return whether this version of Textual is supported and the differ is not disabled."""
    return is_known() and os.environ.get(SWITCH, "") != "off"


def erases_in_color(environment: Mapping[str, str]) -> bool:
    """Return whether erased cells get the current background: not in GNU screen by default."""
    return not environment.get("TERM", "").startswith("screen") or "TMUX" in environment


class DiffedFrames(App[Any]):
    """Mixin to put before `App`; sends only changed cells."""

    _shown: ShownScreen | None = None
    _cell_maker: CellMaker | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._diffs = is_possible()
        self.pacing = Pacing()
        self.pictures = Pictures()
        if is_known():
            self.stylesheet = KeptStylesheet(variables=self.get_css_variables())

    def forget_frame(self) -> None:
        """Note that the terminal may show anything; the next frame is sent in full."""
        self._shown = None

    def action_redraw(self) -> None:
        """Draw the whole screen again, after something else wrote on the terminal."""
        self.forget_frame()
        self.pictures.lost()
        self.screen.refresh()

    @property
    def draws_cells(self) -> bool:
        """Whether frames go through the differ to a terminal, so that they can have pictures."""
        driver = self._driver
        return self._diffs and driver is not None and not self.is_headless and not driver.is_inline

    def _build_driver(
        self, headless: bool, inline: bool, mouse: bool, size: tuple[int, int] | None
    ) -> Driver:
        driver = super()._build_driver(headless, inline, mouse, size)
        start = driver.start_application_mode

        def start_afresh() -> None:
            self.forget_frame()
            start()
            if isinstance(driver, OutletDriver) and self._diffs:
                with self._context():  # also after a suspension, which ends in a signal's handler
                    self.pacing.begin(driver)
            self.pictures.lost()

        # Entering the terminal, at first and after each suspension, means an unknown screen.
        driver.start_application_mode = start_afresh  # pyright: ignore[reportAttributeAccessIssue]
        return driver

    async def on_event(self, event: events.Event) -> None:
        """Redraw after a resize, even to the same size: the terminal may show anything after it."""
        if isinstance(event, events.Resize) and self._diffs:
            self.forget_frame()
            if self._screen_stack:
                self.screen.refresh()
        await super().on_event(event)

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        if not self._diffs or renderable is None or self._batch_count:
            super()._display(screen, renderable)
            return
        driver = self._driver
        if driver is None or not self.draws_cells:
            super()._display(screen, renderable)
            return
        if not isinstance(renderable, LayoutUpdate | ChopsUpdate):
            self.forget_frame()
            super()._display(screen, renderable)
            return
        if self._running and not self._closed:
            self._send(driver, renderable)
        self.post_display_hook()

    def _send(self, driver: Driver, update: Update) -> None:
        cursor = self.screen.outer_size.clamp_offset(self.cursor_position)
        self._previous_cursor_position = cursor
        written = self._shown_screen().draw(
            placed_strips(update), (cursor.x, cursor.y), scrolls=self._sync_available
        )
        if not written:
            return
        if self._sync_available:
            written = f"{SYNC_START}{written}{SYNC_END}"
        driver.write(self.pacing.frame(written))
        driver.flush()

    def _shown_screen(self) -> ShownScreen:
        width, height = self.size
        shown = self._shown
        if shown is None or (shown.width, shown.height) != (width, height):
            shown = self._shown = ShownScreen(
                width, height, self._maker(), erases=erases_in_color(os.environ)
            )
        return shown

    def _maker(self) -> CellMaker:
        if self._cell_maker is None:
            system = COLOR_SYSTEMS.get(self.console.color_system or "", ColorSystem.TRUECOLOR)
            self._cell_maker = CellMaker(Pens(system), self.pictures)
        return self._cell_maker
