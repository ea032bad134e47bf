"""Reads frames in the cockpit: every length is checked, every text made safe for the screen.

Safe: no control characters, and exactly as wide as declared. The emulator and the
screen library may disagree on a character's width, and one cell too many moves the whole line. So a
run whose width differs is rebuilt character by character.
"""

import struct
import unicodedata
from functools import lru_cache

from rich.cells import cell_len

from quarterdeck.transcript.text import MOST_JOINED, thin_marks
from quarterdeck.tui.terminal.channel import (
    HEAD,
    MARKS,
    NO_COLOR,
    PALETTE,
    READS,
    ROW,
    RUN,
    STYLE,
    STYLES_RESET,
    VISIBLE,
    BadFrameError,
    FrameDelta,
)
from quarterdeck.tui.terminal.core import (
    CellRun,
    CellStyle,
    Color,
    CursorPosition,
    Reading,
    Row,
    Scrollback,
    State,
    TerminalMode,
)

_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_JOINERS = "\u200c\u200d\ufe0e\ufe0f"
_TITLE_LIMIT = 200


def _harmless(character: str) -> str:
    """Return the character, or a replacement when it would control the outer terminal."""
    if character in _JOINERS:
        return character
    match unicodedata.category(character):
        case "Cc" | "Cf" | "Cs" | "Zl" | "Zp":
            return _UNKNOWN
        case _:
            return character


def _exactly(text: str, cells: int) -> str:
    width = cell_len(text)
    if not 0 < width <= cells:
        text, width = _UNKNOWN, 1
    return text + " " * (cells - width)


@lru_cache(maxsize=8192)
def fit(text: str, cells: int) -> str:
    """Return `text` without control characters, in exactly `cells` cells.

    It is either one grapheme, or characters that are all one or all two cells wide.
    """
    clean = thin_marks("".join(map(_harmless, text)).rstrip("\u200d"))
    if len(clean) > cells + MOST_JOINED:  # so it is one grapheme
        clean = clean[: 1 + MOST_JOINED].rstrip("\u200d")
    if cell_len(clean) == cells:
        return clean
    width = cells // len(clean) if clean else 0
    if width not in (1, 2) or width * len(clean) != cells:
        return _exactly(clean[:1], cells)
    return "".join([_exactly(character, width) for character in clean])


def clean_title(title: str) -> str:
    """Return a window's title without control characters and piled marks, at most 200 characters."""
    return thin_marks("".join([c for c in title if c.isprintable()]))[:_TITLE_LIMIT]


def _unpack_color(value: int) -> Color:
    if value == NO_COLOR:
        return None
    if value & PALETTE:
        return value & 0xFF
    return value & 0xFF, value >> 8 & 0xFF, value >> 16 & 0xFF


class FrameDecoder:
    """The cockpit's end, one for each terminal. Its text is safe for a screen: see `text.fit`."""

    def __init__(self) -> None:
        self._styles: list[CellStyle] = []

    def decode(self, body: bytes) -> FrameDelta:
        """Return a frame from bytes.

        Raises:
            BadFrameError: not a frame.
        """
        try:
            return self._decode(body)
        except (struct.error, IndexError, ValueError) as e:
            raise BadFrameError(f"a frame cannot be read: {e}") from e

    def _decode(self, body: bytes) -> FrameDelta:
        (
            cols, rows, x, y, flags, shape, modes, total, offset, shown, bells, matches, match,
            title, styles, changed,
        ) = HEAD.unpack_from(body)  # fmt: skip
        at = HEAD.size
        name = body[at : at + title].decode("utf-8", "replace")
        at = self._define(body, at + title, styles, bool(flags & STYLES_RESET))
        found: list[tuple[int, Row]] = []
        for _ in range(changed):
            place, runs, size = ROW.unpack_from(body, at)
            at += ROW.size
            end = at + runs * RUN.size
            if end + size > len(body):
                raise BadFrameError("a row is cut")
            text = body[end : end + size].decode("utf-8", "replace")
            found.append((place, self._row(body[at:end], text)))
            at = end + size
        state = State(
            cols,
            rows,
            CursorPosition(x, y, bool(flags & VISIBLE), shape),
            TerminalMode(modes),
            Scrollback(total, offset, shown),
            clean_title(name),
            bells,
            Reading(bool(flags & MARKS), matches, match) if flags & READS else None,
        )
        return FrameDelta(state, found)

    def _define(self, body: bytes, at: int, count: int, fresh: bool) -> int:
        if fresh:
            self._styles = []
        end = at + count * STYLE.size
        for fg, bg, line, attributes, underline in STYLE.iter_unpack(body[at:end]):
            self._styles.append(
                CellStyle(
                    _unpack_color(fg), _unpack_color(bg), attributes, underline, _unpack_color(line)
                )
            )
        return end

    def _row(self, packed: bytes, text: str) -> Row:
        styles = self._styles
        simple = text.isascii() and text.isprintable()
        runs: list[CellRun] = []
        start = 0
        for number, cells, length in RUN.iter_unpack(packed):
            part = text[start : start + length]
            start += length
            if not simple:
                part = fit(part, cells)
            elif length != cells:
                raise BadFrameError("a run is not as wide as its text")
            runs.append(CellRun(part, cells, styles[number]))
        return tuple(runs)
