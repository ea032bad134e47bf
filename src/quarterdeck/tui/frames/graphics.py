"""Pictures on terminals that show pixels, as cells among the other cells of a frame.

    Picture -> characters of its own, one per cell -> strips -> cells -> compared like text -> terminal

Each cell of a picture has a character of plane 16, and a mark that survives what Textual does to styles below
dialogs. So a picture is cropped, covered, uncovered and removed by what does the same to text. How its cells are
written depends on the protocol:

    kitty  the image is sent before, under a number; a cell is a placeholder that names its row and column
    sixel  changed cells are cleared, and the part of the image in them is drawn after the text of the frame
"""

import base64
import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import NamedTuple

from rich.style import Style
from textual.geometry import Region

from quarterdeck.tui.frames.cells import MARKED, Cell, Pen

MARK = Style(frame=True, encircle=True)
"""The style of characters that are cells of a picture: nothing else has it, so no text can pretend to be one."""

_FIRST, _END = 0x100000, 0x10E000
_FREE = Cell(" ", Pen())
"""Drawn in place of a cell whose picture was removed."""
PLACEHOLDER = "\U0010eeee"
_DIACRITICS = """
305 30d-30e 310 312 33d-33f 346 34a-34c 350-352 357 35b 363-36f 483-487 592-595 597-599
59c-5a1 5a8-5a9 5ab-5ac 5af 5c4 610-617 657-65b 65d-65e 6d6-6dc 6df-6e2 6e4 6e7-6e8 6eb-6ec
730 732-733 735-736 73a 73d 73f-741 743 745 747 749-74a 7eb-7f1 7f3 816-819 81b-823 825-827
829-82d 951 953-954 f82-f83 f86-f87 135d-135f 17dd 193a 1a17 1a75-1a7c 1b6b 1b6d-1b73
1cd0-1cd2 1cda-1cdb 1ce0 1dc0-1dc1 1dc3-1dc9 1dcb-1dcc 1dd1-1de6 1dfe 20d0-20d1 20d4-20d7
20db-20dc 20e1 20e7 20e9 20f0 2cef-2cf1 2de0-2dff a66f a67c-a67d a6f0-a6f1 a8e0-a8f1 aab0
aab2-aab3 aab7-aab8 aabe-aabf aac1 fe20-fe26 10a0f 10a38 1d185-1d189 1d1aa-1d1ad 1d242-1d244
"""


def _numbers(ranges: str) -> Iterator[str]:
    for first, last in re.findall("([0-9a-f]+)(?:-([0-9a-f]+))?", ranges):
        yield from map(chr, range(int(first, 16), int(last or first, 16) + 1))


NUMBERS = tuple(_numbers(_DIACRITICS))
"""The marks that stand for the numbers of rows and columns, as the kitty protocol defines them."""
MOST_CELLS = 18_000
"""Cells of a picture, so that three have characters; no side may be longer than `NUMBERS` either."""

_CHUNK = 2_048
"""Bytes of an image that are sent at once: a key's frame may have to wait for them."""
_KITTY_IDS = range(16, 256)
"""Numbers that can be written as one of 256 colors, which tmux does not change."""
_next_kitty_id = count(random.randrange(len(_KITTY_IDS)))
_next_serial = count(1)


class Picture(ABC):
    """A picture of `width` x `height` cells. `Pictures` gives it its characters."""

    first = 0

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.height = height
        self.on_lost: Callable[[], object] | None = None
        """Called when the terminal may have forgotten it."""

    def text(self, row: int) -> str:
        """Return the characters of a row, to be drawn in a style with `MARK`."""
        start = self.first + row * self.width
        return "".join(map(chr, range(start, start + self.width)))

    @abstractmethod
    def cell(self, index: int) -> Cell:
        """Return one of its cells, counted row by row."""

    def begin(self) -> Sequence[str]:
        """Return what to send before its cells are drawn, piece by piece."""
        return ()

    def end(self) -> str:
        """Return what deletes it from the terminal, also when only a part was sent."""
        return ""


class KittyPicture(Picture):
    """A PNG, which the terminal scales."""

    def __init__(self, width: int, height: int, png: bytes) -> None:
        super().__init__(width, height)
        self._png = png
        self._id = _KITTY_IDS[next(_next_kitty_id) % len(_KITTY_IDS)]
        self._pen = Pen(foreground=f"38;5;{self._id}")

    def cell(self, index: int) -> Cell:
        row, column = divmod(index, self.width)
        return Cell(f"{PLACEHOLDER}{NUMBERS[row]}{NUMBERS[column]}", self._pen)

    def begin(self) -> Sequence[str]:
        data = base64.b64encode(self._png).decode()
        chunks = [data[at : at + _CHUNK] for at in range(0, len(data), _CHUNK)]
        # q=2: no reply, which would be read as keys.
        head = f"a=T,U=1,f=100,i={self._id},c={self.width},r={self.height},q=2,"
        return [
            f"\x1b_G{'' if at else head}m={int(at < len(chunks) - 1)}{',q=2' if at else ''};{chunk}\x1b\\"
            for at, chunk in enumerate(chunks)
        ]

    def end(self) -> str:
        # Without a last piece, the next image would be taken for the rest of this one.
        return f"\x1b_Gm=0,q=2;\x1b\\\x1b_Ga=d,d=I,i={self._id},q=2\x1b\\"


class Crops(ABC):
    """An image that can be written in parts."""

    @abstractmethod
    def crop(self, cells: Region) -> str:
        """Return the sequence that draws some of its cells at the cursor."""


class SixelPicture(Picture):
    """An image of exactly its cells' pixels."""

    def __init__(self, width: int, height: int, image: Crops) -> None:
        super().__init__(width, height)
        self.image = image
        # Never written: it makes the cells of each picture different from all others.
        self._pen = Pen(MARKED, foreground=str(next(_next_serial)))

    def cell(self, index: int) -> Cell:
        return Cell(chr(self.first + index), self._pen)


class Pictures:
    """The pictures whose cells may be in a frame."""

    def __init__(self) -> None:
        self._shown: list[Picture] = []
        self._next = _FIRST

    def add(self, picture: Picture) -> None:
        """Give a picture characters that no other has."""
        size = picture.width * picture.height
        while (at := self._free(size)) is None:
            self._shown.pop(0)
        picture.first, self._next = at, at + size
        self._shown.append(picture)

    def _free(self, size: int) -> int | None:
        # Not the same ones again at once: cells of the previous picture may still be shown.
        for at in (self._next, _FIRST, *map(_end, self._shown)):
            if at + size <= _END and not any(_overlaps(one, at, size) for one in self._shown):
                return at
        return None

    def lost(self) -> None:
        """Note that the terminal may have forgotten what it was sent."""
        for picture in list(self._shown):
            if picture.on_lost is not None:
                picture.on_lost()

    def remove(self, picture: Picture) -> None:
        """Take a picture out: its characters are blanks from now on."""
        if picture in self._shown:
            self._shown.remove(picture)

    def cells(self, text: str) -> list[Cell]:
        """Return the cells that marked characters stand for."""
        return [self._cell(ord(character)) for character in text]

    def _cell(self, code: int) -> Cell:
        found = self._at(code)
        return _FREE if found is None else found[0].cell(found[1])

    def _at(self, code: int) -> tuple[Picture, int] | None:
        for picture in self._shown:
            if picture.first <= code < _end(picture):
                return picture, code - picture.first
        return None

    def part(self, cell: Cell) -> "tuple[SixelPicture, int] | None":
        """Return the picture that has to be drawn in a cell, and the cell's number in it."""
        if cell.pen.attributes != MARKED:
            return None
        match self._at(ord(cell.text)):
            case SixelPicture() as picture, index:
                return picture, index
            case _:
                return None

    def is_drawn_in(self, row: Sequence[Cell]) -> bool:
        """Return whether a row has a part of a picture that is drawn after the text."""
        return self.are_drawn and any(cell.pen.attributes == MARKED for cell in row)

    @property
    def are_drawn(self) -> bool:
        """Whether there is a picture that is drawn after the text."""
        return any(isinstance(picture, SixelPicture) for picture in self._shown)


def _end(picture: Picture) -> int:
    return picture.first + picture.width * picture.height


def _overlaps(picture: Picture, at: int, size: int) -> bool:
    return picture.first < at + size and at < _end(picture)


class _Part(NamedTuple):
    """Cells of a picture, and where they are on the screen."""

    picture: SixelPicture
    cells: Region
    x: int
    y: int


class Drawing:
    """The parts of pictures that a frame has to draw, joined where they are one below the other."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []

    def add(self, picture: SixelPicture, index: int, width: int, x: int, y: int) -> None:
        """Add cells of one row."""
        row, column = divmod(index, picture.width)
        fresh = _Part(picture, Region(column, row, width, 1), x, y)
        for at, known in enumerate(self._parts):
            cells = known.cells
            below = cells.x == column and cells.width == width and cells.bottom == row
            if below and known.picture is picture and (known.x, known.y + cells.height) == (x, y):
                self._parts[at] = known._replace(
                    cells=Region(*cells.offset, width, cells.height + 1)
                )
                return
        self._parts.append(fresh)

    def written(self) -> str:
        """Return the sequences that draw them. The cursor may be anywhere afterwards."""
        return "".join(
            f"\x1b[{part.y + 1};{part.x + 1}H{part.picture.image.crop(part.cells)}"
            for part in self._parts
        )
