"""The output of a command as rows: its colors are kept, all other control sequences are removed."""

import re
from collections.abc import Iterator

from rich.ansi import AnsiDecoder
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from quarterdeck.transcript.text import clean_output

TAB = 8
_COLOR = re.compile("\x1b\\[[0-9;]*m")


def output_rows(output: str, width: int, base: Style) -> list[Strip]:
    """Return rows of at most a width."""
    text = output.removesuffix("\n")
    if not text:
        return []
    lines = _colored(text, base) if "\x1b[" in text else _plain(text, base)
    return [row for line in lines for row in folded(line, width)]


def folded(line: Strip, width: int) -> list[Strip]:
    """Return a line in rows."""
    width = max(2, width)
    cells = line.cell_length
    if cells <= width:
        return [line]
    return list(line.divide([*range(width, cells, width), cells]))


def _plain(text: str, base: Style) -> Iterator[Strip]:
    for line in clean_output(text).split("\n"):
        yield Strip([Segment(line.expandtabs(TAB), base)])


def _colored(text: str, base: Style) -> Iterator[Strip]:
    decoder = AnsiDecoder()
    for line in text.split("\n"):
        decoded: Text = decoder.decode_line(_only_colors(line))
        decoded.expand_tabs(TAB)
        spans = [(span.start, span.end, span.style) for span in decoded.spans]
        yield Strip(list(_segments(decoded.plain, spans, base)))


def _segments(
    text: str, spans: list[tuple[int, int, str | Style]], base: Style
) -> Iterator[Segment]:
    """Yield a text's segments; the decoder's spans are in order and do not overlap."""
    at = 0
    for begin, end, style in spans:
        if begin > at:
            yield Segment(text[at:begin], base)
        yield Segment(text[begin:end], base + _harmless(style))
        at = end
    if at < len(text):
        yield Segment(text[at:], base)


def _harmless(style: str | Style) -> Style:
    """Return a style that is neither hidden nor blinking, and has no link."""
    if isinstance(style, str):
        return Style()
    return Style(
        color=style.color,
        bgcolor=style.bgcolor,
        bold=style.bold,
        dim=style.dim,
        italic=style.italic,
        underline=style.underline,
        reverse=style.reverse,
        strike=style.strike,
    )


def _only_colors(line: str) -> str:
    """Return a line without anything but text and colors; overwritten text leaves only its colors."""
    overwritten, _, kept = line.rstrip("\r").rpartition("\r")
    found = _COLOR.findall(overwritten)
    pieces, colors = _COLOR.split(kept), _COLOR.findall(kept)
    for number, piece in enumerate(pieces):
        found.append(clean_output(piece).replace("\n", " "))
        if number < len(colors):
            found.append(colors[number])
    return "".join(found)
