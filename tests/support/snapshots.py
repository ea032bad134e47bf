"""Pictures of screens stored as text: the rows, the style of each cell, and a legend of the styles.

A picture is one file, `__snapshots__/MODULE/TEST.txt` beside the module of its test::

    size 80x24
    themes dark light

    text
     1|▸ fix-login  asking
     2|

    styles
     1|a2 b9 c69
     2|c80

    legend
    a  dark  #ffa62b on #121212 bold
       light #6b4a00 on #e0e0e0 bold

`a2` is two cells in style `a`; of a blank cell the background counts alone. Themes share the text:
one that shows another text fails.
`--update-snapshots` stores what a test shows; without it a picture that differs, is not stored, or
is stored and not taken any more fails the test.
"""

import asyncio
import difflib
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, groupby, product
from pathlib import Path
from string import ascii_letters
from typing import Any

import pytest
from rich.cells import get_character_cell_size
from rich.color import Color, ColorType
from rich.style import Style
from textual.app import App
from textual.pilot import Pilot
from textual.strip import Strip

from tests.support.shown import shown_strips

DIRECTORY = "__snapshots__"
OPTION = "--update-snapshots"
STANDARD = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
FLAGS = (
    *("bold", "dim", "italic", "underline", "underline2", "strike"),
    *("overline", "reverse", "blink", "conceal"),
)
SHOWN_ON_BLANKS = {"underline", "underline2", "strike", "overline", "reverse"}


@dataclass(frozen=True)
class Look:
    """What of a style can be seen."""

    foreground: str
    background: str
    flags: tuple[str, ...] = ()
    link: str = ""

    def __str__(self) -> str:
        link = (f"link={self.link}",) if self.link else ()
        return " ".join((self.foreground, "on", self.background, *self.flags, *link))

    @property
    def plain(self) -> bool:
        """Whether a blank in this style shows its background alone."""
        return not self.link and SHOWN_ON_BLANKS.isdisjoint(self.flags)


Cells = list[tuple[str, Look]]
"""A row: text and look of each cell; the second half of a wide character is an empty text."""


@dataclass(frozen=True)
class Picture:
    """The cells of a screen."""

    rows: list[Cells]

    @property
    def size(self) -> str:
        return f"{len(self.rows[0])}x{len(self.rows)}"


def picture(app: App[Any]) -> Picture:
    """Return what the app shows now."""
    return picture_of(shown_strips(app))


def picture_of(strips: Iterable[Strip]) -> Picture:
    return Picture([_cells(strip) for strip in strips])


def _cells(strip: Strip) -> Cells:
    cells: Cells = []
    for segment in strip:
        look = _look(segment.style or Style.null())
        if segment.text.isascii() and segment.text.isprintable():
            cells += [(character, look) for character in segment.text]
            continue
        for character in segment.text:
            width = get_character_cell_size(character)
            if width == 0 and cells:  # combines with the one to its left, which may be wide
                at = max(n for n, (text, _) in enumerate(cells) if text)
                cells[at] = (cells[at][0] + _printable(character), cells[at][1])
            else:
                cells.append((_printable(character), look))
                cells += [("", look)] * (width - 1)
    return cells


def _printable(character: str) -> str:
    return character if character.isprintable() else f"⟨U+{ord(character):04X}⟩"


def _look(style: Style) -> Look:
    flags = tuple(flag for flag in FLAGS if getattr(style, flag))
    return Look(_color(style.color), _color(style.bgcolor), flags, style.link or "")


def _color(color: Color | None) -> str:
    if color is None or color.type is ColorType.DEFAULT:
        return "default"
    if color.triplet is not None:
        return color.triplet.hex
    assert color.number is not None
    if color.number < 16:
        return ("", "bright_")[color.number // 8] + STANDARD[color.number % 8]
    return f"color({color.number})"


Pictures = Mapping[str, Picture]
"""One screen in several themes, by their names."""


def as_text(pictures: Pictures, stored: str = "") -> str:
    """Return the file's content for a screen.

    Args:
        pictures: They may differ in colors alone.
        stored: An older content, whose letters are kept so that the change is all that differs.
    """
    first = next(iter(pictures.values()))
    texts = _texts(first)
    for theme, other in pictures.items():
        if (shown := _texts(other)) != texts:
            changed = _difference(texts, shown, next(iter(pictures)), theme)
            raise AssertionError(f"{theme} shows another text:\n{changed}")
    names = _Names(stored, list(pictures))
    styles: list[str] = []
    for cells in zip(*(one.rows for one in pictures.values()), strict=True):
        runs = groupby(_seen(cells))
        named = ((names.of(looks), len(list(run))) for looks, run in runs)
        styles.append(" ".join(f"{name}{count}" for name, count in named))
    return "\n".join(
        (
            f"size {first.size}",
            f"themes {' '.join(pictures)}",
            *("", "text", *_numbered(texts)),
            *("", "styles", *_numbered(styles)),
            *("", "legend", *names.legend()),
            "",
        )
    )


def _texts(of: Picture) -> list[str]:
    return ["".join(text for text, _ in row).rstrip() for row in of.rows]


def _seen(rows: tuple[Cells, ...]) -> Iterator[tuple[Look, ...]]:
    """The looks of each cell, by theme. A blank takes those of its left where that is not seen."""
    last: tuple[Look, ...] = ()
    before: tuple[bool, tuple[Look, ...]] | None = None
    for cells in zip(*rows, strict=True):
        looks = tuple([look for _, look in cells])
        blank = cells[0][0] == " "
        if before == (blank, looks):  # most are like the cell to their left
            yield last
            continue
        before = blank, looks
        if blank and all(look.plain for look in looks):
            like_last = bool(last) and all(
                left.plain and left.background == look.background
                for left, look in zip(last, looks, strict=True)
            )
            looks = last if like_last else tuple(Look("-", one.background) for one in looks)
        yield looks
        last = looks


class _Names:
    """Letters for styles, each of which is a line of the legend for every theme."""

    def __init__(self, stored: str, themes: list[str]) -> None:
        self._themes = themes
        self._width = max(map(len, themes))
        self._stored = {entry[3:]: entry.split()[0] for entry in _entries(stored)}
        self._used: dict[str, str] = {}
        letters = map("".join, chain(ascii_letters, product(ascii_letters, repeat=2)))
        self._free = (letter for letter in letters if letter not in self._stored.values())

    def of(self, looks: tuple[Look, ...]) -> str:
        pairs = zip(self._themes, looks, strict=True)
        entry = "\n   ".join(f"{theme:{self._width}} {look}" for theme, look in pairs)
        if entry not in self._used:
            self._used[entry] = self._stored.get(entry) or next(self._free)
        return self._used[entry]

    def legend(self) -> list[str]:
        by_name = {name: entry for entry, name in self._used.items()}
        names = sorted(by_name, key=lambda name: (len(name), ascii_letters.index(name[0]), name))
        return [f"{name:2} {by_name[name]}" for name in names]


def _entries(text: str) -> list[str]:
    """The entries of a file's legend."""
    legend = text.partition("\nlegend\n")[2].rstrip("\n")
    return re.split(r"\n(?! )", legend) if legend else []


def _numbered(lines: list[str]) -> list[str]:
    return [f"{number:3}|{line}" for number, line in enumerate(lines, 1)]


def _difference(stored: list[str], shown: list[str], one: str, other: str) -> str:
    return "\n".join(difflib.unified_diff(stored, shown, one, other, lineterm="", n=1))


def check(
    directory: Path, test: str, screens: Mapping[str, Pictures], *, update: bool = False
) -> list[str]:
    """Compare all pictures of a test with those stored, and return what is wrong.

    Args:
        directory: Where the pictures of its module are.
        test: Its name, with its parameters.
        screens: What was taken in each part of the test; the name of the only one is empty.
        update: Whether to store what differs, and remove what is not taken, instead.
    """
    problems: list[str] = []
    taken = {f"{test}{f'[{part}]' if part else ''}.txt": one for part, one in screens.items()}
    for name, pictures in taken.items():
        path = directory / name
        stored = path.read_text(encoding="utf-8") if path.exists() else ""
        text = as_text(pictures, stored)
        if stored == text:
            continue
        if update:
            directory.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not stored:
            problems.append(f"{path} is not stored ({OPTION} does it); shown:\n{text}")
        else:
            changed = _difference(stored.splitlines(), text.splitlines(), str(path), "shown")
            problems.append(f"{changed}\n({OPTION} stores what is shown)")
    for path in directory.glob("*.txt"):
        if not _belongs(path, test) or path.name in taken:
            continue
        if update:
            path.unlink()
        else:
            problems.append(f"{path} is stored, and not taken ({OPTION} removes it)")
    return problems


def _belongs(path: Path, test: str) -> bool:
    return path.name == f"{test}.txt" or path.name.startswith(f"{test}[")


def orphans(root: Path, tests: Mapping[Path, Iterable[str]]) -> list[Path]:
    """Return what is stored below `root` and belongs to no test.

    Args:
        root: A directory of tests.
        tests: The names of all tests of some modules; others that exist may have any.
    """
    found: list[Path] = []
    for path in sorted(root.rglob(f"{DIRECTORY}/*/*")):
        module = path.parent.parent.parent / f"{path.parent.name}.py"
        names = tests.get(module, ())
        known = any(_belongs(path, name) for name in names) if names else module.exists()
        if not known or path.suffix != ".txt":
            found.append(path)
    return found


TESTS = pytest.StashKey[dict[Path, set[str]]]()
"""The names of the tests of each module that was collected, selected or not."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, action="store_true", help="store pictures of screens as they are now")


@pytest.hookimpl(tryfirst=True)  # before any is left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tests = config.stash[TESTS] = {}
    for item in items:
        tests.setdefault(item.path, set()).add(item.name)


Check = Callable[[Mapping[str, Pictures]], None]
Prepare = Callable[[Pilot[Any]], Awaitable[None]]


@pytest.fixture
def check_snapshots(request: pytest.FixtureRequest) -> Check:
    """Fail unless the pictures of the test, by their parts, are those stored. Call it once."""

    def compare(screens: Mapping[str, Pictures]) -> None:
        path, update = request.node.path, request.config.getoption(OPTION)
        directory = path.parent / DIRECTORY / path.stem
        problems = check(directory, request.node.name, screens, update=update)
        if problems:
            pytest.fail("\n\n".join(problems), pytrace=False)

    return compare


@pytest.fixture
def snap_compare(check_snapshots: Check) -> Callable[..., bool]:
    """Run an app, prepare it, and fail unless its picture is the one stored; else return True."""

    async def shown(app: App[Any], size: tuple[int, int], prepare: Prepare) -> Pictures:
        async with app.run_test(size=size) as pilot:
            await prepare(pilot)
            await pilot.wait_for_scheduled_animations()
            return {app.theme: picture(app)}

    def compare(app: App[Any], terminal_size: tuple[int, int], run_before: Prepare) -> bool:
        check_snapshots({"": asyncio.run(shown(app, terminal_size, run_before))})
        return True

    return compare
