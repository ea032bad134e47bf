"""A terminal that shows images: kitty's, in cells of text, and sixel. It reads what a program has written."""

import base64
import io
import re
from typing import Any

import pyte
from PIL import Image
from pyte.graphics import FG_BG_256
from pyte.screens import Char

from quarterdeck.tui.frames.graphics import NUMBERS, PLACEHOLDER
from tests.support.visible import known_to_pyte

WIDTH, HEIGHT = 8, 16
"""Pixels of a cell."""
_STRING = re.compile(rb"\x1b_G(?P<kitty>[^\x1b]*)\x1b\\|\x1bP[\d;]*q(?P<sixel>[^\x1b]*)\x1b\\")
_BEGUN = re.compile(rb"\x1b(?:[_P](?:[^\x1b]|\x1b(?!\\))*)?$")
_SIXEL = re.compile(rb'"[\d;]+|#\d+(?:;2;\d+;\d+;\d+)?|!\d+.|[$-]|[?-~]')
_TOKEN = "sixel"

Pixels = Image.Image


class PictureTerminal:
    """`screen` has the text. Cells of a sixel image hold its number, so that text replaces them."""

    def __init__(self, columns: int, rows: int) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._held = b""
        self._loading: list[dict[str, str]] = []
        self._pieces: list[bytes] = []
        self.kitty: dict[int, Pixels] = {}
        """Images in the size of their place, by number."""
        self.received: list[Pixels] = []
        """All of kitty's images, as they came."""
        self.sixels: list[Pixels] = []

    def feed(self, data: bytes) -> None:
        """Read what was written; the end of a sequence may be still to come."""
        data, self._held = self._held + data, b""
        if begun := _BEGUN.search(data):
            data, self._held = data[: begun.start()], begun[0]
        position = 0
        for found in _STRING.finditer(data):
            self._stream.feed(known_to_pyte(data[position : found.start()]))
            position = found.end()
            if found["kitty"] is not None:
                self._kitty(found["kitty"])
            else:
                self._draw_sixel(decoded_sixel(found["sixel"]))
        self._stream.feed(known_to_pyte(data[position:]))

    def _kitty(self, command: bytes) -> None:
        keys, _, payload = command.partition(b";")
        values: dict[str, str] = dict(pair.split("=") for pair in keys.decode().split(","))
        assert values["q"] == "2", "the terminal would reply"
        if values.get("a") == "d":
            self.kitty.pop(int(values["i"]), None)
            self._loading.clear()
            return
        if not self._loading and "a" not in values:
            return  # the end of nothing
        self._loading.append(values)
        self._pieces.append(payload)
        if values["m"] == "0":
            first, content = self._loading[0], b"".join(self._pieces)
            self._loading, self._pieces = [], []
            assert (first["a"], first["U"], first["f"]) == ("T", "1", "100")
            image = Image.open(io.BytesIO(base64.b64decode(content))).convert("RGB")
            self.received.append(image)
            room = int(first["c"]) * WIDTH, int(first["r"]) * HEIGHT
            self.kitty[int(first["i"])] = _within(image, *room)

    def _draw_sixel(self, image: Pixels) -> None:
        cursor = self.screen.cursor
        self.sixels.append(image)
        for y in range(-(-image.height // HEIGHT)):
            for x in range(-(-image.width // WIDTH)):
                token = f"{_TOKEN}:{len(self.sixels) - 1}:{x}:{y}"
                self.screen.buffer[cursor.y + y][cursor.x + x] = Char(token)

    def cell(self, x: int, y: int) -> Pixels | None:
        """The pixels of a cell that shows a part of an image."""
        char: Any = self.screen.buffer[y][x]
        if char.data.startswith(_TOKEN):
            number, left, top = map(int, char.data.split(":")[1:])
            return _cut(self.sixels[number], left, top)
        if char.data.startswith(PLACEHOLDER) and len(char.data) == 3:
            row, column = map(NUMBERS.index, char.data[1:])
            number = FG_BG_256.index(char.fg, 16)
            return _cut(self.kitty[number], column, row) if number in self.kitty else None
        return None

    def picture(self) -> tuple[tuple[int, int, int, int], Pixels] | None:
        """The bounds, in cells, of all that shows an image, and its pixels; what does not is magenta."""
        cells = {
            (x, y): found
            for y in range(self.screen.lines)
            for x in range(self.screen.columns)
            if (found := self.cell(x, y)) is not None
        }
        if not cells:
            return None
        left, top = min(x for x, _ in cells), min(y for _, y in cells)
        right, bottom = max(x for x, _ in cells) + 1, max(y for _, y in cells) + 1
        size = (right - left) * WIDTH, (bottom - top) * HEIGHT
        whole = Image.new("RGB", size, (255, 0, 255))
        for (x, y), pixels in cells.items():
            whole.paste(pixels, ((x - left) * WIDTH, (y - top) * HEIGHT))
        return (left, top, right, bottom), whole


def _cut(image: Pixels, x: int, y: int) -> Pixels:
    return image.crop((x * WIDTH, y * HEIGHT, (x + 1) * WIDTH, (y + 1) * HEIGHT))


def _within(image: Pixels, width: int, height: int) -> Pixels:
    """The image in the middle of a room, as large as fits, as kitty places it."""
    scale = min(width / image.width, height / image.height)
    size = round(image.width * scale), round(image.height * scale)
    whole = Image.new("RGB", (width, height))
    whole.paste(image.resize(size), ((width - size[0]) // 2, (height - size[1]) // 2))
    return whole


def decoded_sixel(data: bytes) -> Pixels:
    """The image of a sixel sequence, whose size is declared."""
    tokens = _SIXEL.findall(data)
    assert b"".join(tokens) == data
    _, _, width, height = map(int, tokens[0][1:].split(b";"))
    image = Image.new("RGB", (width, height), (255, 0, 255))
    pixels: Any = image.load()
    palette: dict[int, tuple[int, ...]] = {}
    x = top = color = 0
    for token in tokens[1:]:
        match token[:1]:
            case b"#":
                color, *rest = map(int, token[1:].split(b";"))
                if rest:
                    palette[color] = tuple(round(part * 255 / 100) for part in rest[1:])
            case b"$":
                x = 0
            case b"-":
                x, top = 0, top + 6
            case _:
                times = int(token[1:-1]) if token[:1] == b"!" else 1
                for row in range(6):
                    if token[-1] - 63 >> row & 1:
                        for column in range(x, x + times):
                            pixels[column, top + row] = palette[color]
                x += times
    return image


def difference(one: Pixels, other: Pixels) -> float:
    """The mean difference of two images of any size, per channel, up to 255."""
    size = (48, 48)
    pairs = zip(one.resize(size).tobytes(), other.resize(size).tobytes(), strict=True)
    return sum(abs(a - b) for a, b in pairs) / (3 * size[0] * size[1])
