"""How a cell is drawn: its pen. Pens are interned, so that cells compare by identity."""

from functools import lru_cache
from typing import NamedTuple

from rich.color import ColorSystem
from rich.style import Style

from quarterdeck.tui.frames.eight_bit import shown_in

_MOST = 4_096
"""Styles remembered. Text selection makes styles without end that look alike."""


_ATTRIBUTES = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "underline": "4",
    "blink": "5",
    "blink2": "6",
    "reverse": "7",
    "conceal": "8",
    "strike": "9",
    "underline2": "21",
    "frame": "51",
    "encircle": "52",
    "overline": "53",
}


class Pen(NamedTuple):
    """Codes of attributes, foreground and background, and the link's address."""

    attributes: str = ""
    foreground: str = ""
    background: str = ""
    link: str = ""


PLAIN = Pen()

_SEEN_ON_BLANKS = frozenset({"4", "7", "9", "21", "51", "52", "53"})
"""Attributes that show on a cell without a character."""


class Pens:
    """The pen of each style, for one color system."""

    def __init__(self, color_system: ColorSystem) -> None:
        self._color_system = color_system
        self._by_style: dict[Style, Pen] = {}
        self._pens: dict[Pen, Pen] = {PLAIN: PLAIN}

    def of(self, style: Style | None) -> Pen:
        """The one pen that draws a style."""
        if style is None:
            return PLAIN
        pen = self._by_style.get(style)
        if pen is None:
            if len(self._by_style) >= _MOST:
                self._by_style.clear()
            fresh = _pen(style, self._color_system)
            pen = self._by_style[style] = self._pens.setdefault(fresh, fresh)
        return pen

    def forget(self) -> None:
        """Nothing is remembered any more."""
        self._by_style.clear()
        self._pens.clear()
        self._pens[PLAIN] = PLAIN


@lru_cache(maxsize=_MOST)
def pen_of_blank(pen: Pen) -> Pen:
    """The least that draws a blank as the pen does: mostly its background alone."""
    if pen.link or not _SEEN_ON_BLANKS.isdisjoint(pen.attributes.split(";")):
        return pen
    return Pen(background=pen.background)


def change(before: Pen, after: Pen) -> str:
    """The control sequences that turn one pen into another."""
    codes = _codes(before, after)
    sgr = f"\x1b[{codes}m" if codes is not None else ""
    return sgr + _link(after.link) if before.link != after.link else sgr


def _codes(before: Pen, after: Pen) -> str | None:
    if before[:3] == after[:3]:
        return None
    if after[:3] == PLAIN[:3]:
        return ""
    if before.attributes != after.attributes and before.attributes:
        told = ["0", after.attributes, after.foreground, after.background]
        return ";".join(code for code in told if code)
    told: list[str] = []
    if before.attributes != after.attributes:
        told.append(after.attributes)
    if before.foreground != after.foreground:
        told.append(after.foreground or "39")
    if before.background != after.background:
        told.append(after.background or "49")
    return ";".join(told)


def _link(address: str) -> str:
    if not address:
        return "\x1b]8;;\x1b\\"
    # The same address gets the same id, so that a link folded over two rows is one link.
    return f"\x1b]8;id={hash(address) & 0xFFFFFF:x};{address}\x1b\\"


def _pen(style: Style, color_system: ColorSystem) -> Pen:
    attributes = ";".join(code for name, code in _ATTRIBUTES.items() if getattr(style, name))
    foreground = background = ""
    if style.color is not None:
        foreground = ";".join(shown_in(style.color, color_system).get_ansi_codes())
    if style.bgcolor is not None:
        background = ";".join(shown_in(style.bgcolor, color_system).get_ansi_codes(False))
    return Pen(
        attributes,
        "" if foreground == "39" else foreground,
        "" if background == "49" else background,
        _address(style.link),
    )


def _address(link: str | None) -> str:
    """A link that cannot end its own control sequence."""
    return "".join(c for c in link or "" if "\x20" < c < "\x7f")
