"""Reads frames in the cockpit: every length is checked, every text made fit for the screen."""

import struct

from quarterdeck.tui.terminal.core import (
    CellStyle,
    Color,
    Cursor,
    Mode,
    Reading,
    Row,
    Run,
    Scrollback,
    State,
)
from quarterdeck.tui.terminal.errors import BadFrame
from quarterdeck.tui.terminal.frames import (
    HEAD,
    MARKS,
    NO_COLOR,
    PALETTE,
    READS,
    ROW,
    RUN,
    STYLE,
    STYLES_ANEW,
    VISIBLE,
    Frame,
)
from quarterdeck.tui.terminal.text import clean_title, fit


def _unpack_color(value: int) -> Color:
    if value == NO_COLOR:
        return None
    if value & PALETTE:
        return value & 0xFF
    return value & 0xFF, value >> 8 & 0xFF, value >> 16 & 0xFF


class FrameDecoder:
    """The cockpit's end, one for each terminal. Its text is fit for a screen: see `text.fit`."""

    def __init__(self) -> None:
        self._styles: list[CellStyle] = []

    def decode(self, body: bytes) -> Frame:
        """A frame from bytes.

        Raises:
            BadFrame: they are no frame.
        """
        try:
            return self._decode(body)
        except (struct.error, IndexError, ValueError) as e:
            raise BadFrame(f"a frame cannot be read: {e}") from e

    def _decode(self, body: bytes) -> Frame:
        (
            cols, rows, x, y, flags, shape, modes, total, offset, shown, bells, matches, match,
            title, styles, changed,
        ) = HEAD.unpack_from(body)  # fmt: skip
        at = HEAD.size
        name = body[at : at + title].decode("utf-8", "replace")
        at = self._define(body, at + title, styles, bool(flags & STYLES_ANEW))
        found: list[tuple[int, Row]] = []
        for _ in range(changed):
            place, runs, size = ROW.unpack_from(body, at)
            at += ROW.size
            end = at + runs * RUN.size
            if end + size > len(body):
                raise BadFrame("a row is cut")
            text = body[end : end + size].decode("utf-8", "replace")
            found.append((place, self._row(body[at:end], text)))
            at = end + size
        state = State(
            cols,
            rows,
            Cursor(x, y, bool(flags & VISIBLE), shape),
            Mode(modes),
            Scrollback(total, offset, shown),
            clean_title(name),
            bells,
            Reading(bool(flags & MARKS), matches, match) if flags & READS else None,
        )
        return Frame(state, found)

    def _define(self, body: bytes, at: int, count: int, anew: bool) -> int:
        if anew:
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
        runs: list[Run] = []
        start = 0
        for number, cells, length in RUN.iter_unpack(packed):
            part = text[start : start + length]
            start += length
            if not simple:
                part = fit(part, cells)
            elif length != cells:
                raise BadFrame("a run is not as wide as its text")
            runs.append(Run(part, cells, styles[number]))
        return tuple(runs)
