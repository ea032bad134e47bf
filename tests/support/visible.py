"""What of a cell a person can see."""

import re

import pyte
from pyte.screens import Char

_UNKNOWN = re.compile(rb"\x1b\[[<>=?][0-9;]*[u$cpqn]+|\x1b\[\?[0-9;]*\$p")


def known_to_pyte(data: bytes) -> bytes:
    """The data without private-mode queries and kitty's keyboard sequences, which draw nothing."""
    return _UNKNOWN.sub(b"", data)


def visible(char: Char) -> tuple[object, ...]:
    """The cell's text and look; of a blank only what shows without a character."""
    if char.data != " " or char.underscore or char.strikethrough or char.reverse:
        return tuple(char)
    return tuple(Char(" ", bg=char.bg))


def visible_rows(screen: pyte.Screen) -> list[list[tuple[object, ...]]]:
    """All cells, row by row."""
    buffer = screen.buffer
    return [[visible(buffer[y][x]) for x in range(screen.columns)] for y in range(screen.lines)]


def text_rows(screen: pyte.Screen) -> list[str]:
    """The characters of each row. The screen's own `display` measures every one of them again, which
    took a fifth of the time of tests that wait for a text; behind a wide one stands an empty one.
    """
    columns = range(screen.columns)
    return [
        "".join([row[x].data for x in columns])
        for row in map(screen.buffer.__getitem__, range(screen.lines))
    ]
