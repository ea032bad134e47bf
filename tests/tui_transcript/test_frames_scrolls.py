"""Rows that move are moved by the terminal, and what it then shows is what a full drawing shows."""

import random
from collections.abc import Callable, Sequence

import pyte
import pytest
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from quarterdeck.tui.frames.app import PlacedStrip, ShownScreen, runs
from quarterdeck.tui.frames.cells import CellMaker, Pens
from quarterdeck.tui.frames.layout import Shift, find_shift
from tests.support.visible import visible_rows

WIDTH, HEIGHT, LEFT = 60, 20, 20
TOP, BOTTOM = 2, 17
"""The moving pane's rows."""


def strip(text: str, width: int, color: str = "") -> Strip:
    return Strip([Segment(text, Style.parse(color))]).adjust_cell_length(width)


class Erasing(pyte.Screen):
    """Erased cells get the background and nothing else, as terminals do it."""

    def erase_characters(self, count: int | None = None) -> None:
        self._plainly(super().erase_characters, count)

    def erase_in_line(self, how: int = 0, private: bool = False) -> None:
        self._plainly(super().erase_in_line, how)

    def _plainly(self, erase: Callable[..., None], amount: int | None) -> None:
        pen = self.cursor.attrs
        self.cursor.attrs = self.default_char._replace(bg=pen.bg)
        erase(amount)
        self.cursor.attrs = pen


class Terminal:
    """A terminal, what is known of it, and what is wanted there."""

    def __init__(self, *, erases: bool = False) -> None:
        self.screen = Erasing(WIDTH, HEIGHT)
        self._stream = pyte.Stream(self.screen)
        maker = CellMaker(Pens(ColorSystem.TRUECOLOR))
        self._shown = ShownScreen(WIDTH, HEIGHT, maker, erases=erases)
        self.sent = 0
        self.scrolled = 0

    def draw(self, panes: Sequence[tuple[Strip, Strip]], *, scrolls: bool) -> None:
        rows = (
            PlacedStrip(y, x, pane)
            for y, row in enumerate(panes)
            for x, pane in zip((0, LEFT), row, strict=True)
        )
        written = self._shown.draw(rows, (0, 0), scrolls=scrolls)
        self.sent += len(written)
        self.scrolled += "\x1bD" in written or "\x1bM" in written
        self._stream.feed(written)

    def cells(self) -> list[list[tuple[object, ...]]]:
        return visible_rows(self.screen)


def text(chosen: random.Random) -> str:
    return "".join(chosen.choices("ab \u6f22\u5b57e\u0301\U0001f389xyz", k=chosen.randrange(40)))


def pane(chosen: random.Random) -> Strip:
    color = chosen.choice(("", "red", "on blue", "bold"))
    # pyte goes on to the next row before a combining mark that belongs into the last column.
    return strip(text(chosen), WIDTH - LEFT - 1, color).adjust_cell_length(WIDTH - LEFT)


@pytest.mark.parametrize("seed", range(12))
def test_moved_rows_look_like_drawn_ones(seed: int) -> None:
    chosen = random.Random(seed)
    names = [strip(f"\u6f22 item {n}", LEFT, "green") for n in range(HEIGHT)]
    panes = [(name, pane(chosen)) for name in names]
    terminal = Terminal()
    terminal.draw(panes, scrolls=True)
    for _ in range(30):
        by = chosen.choice((-3, -1, 0, 1, 2, 7))
        rights = [right for _, right in panes]
        moved = [rights[y + by] if TOP <= y + by < BOTTOM else pane(chosen) for y in range(HEIGHT)]
        rights[TOP:BOTTOM] = moved[TOP:BOTTOM]
        rights[chosen.randrange(HEIGHT)] = pane(chosen)
        names[chosen.randrange(HEIGHT)] = strip(text(chosen)[:9], LEFT)
        panes = list(zip(names, rights, strict=True))
        terminal.draw(panes, scrolls=True)
        plain = Terminal()
        plain.draw(panes, scrolls=False)
        assert terminal.cells() == plain.cells()
    assert terminal.scrolled > 5


def scroll(scrolls: bool, name: Callable[[int], str]) -> Terminal:
    chosen = random.Random(1)
    lines = [strip("".join(chosen.choices("abcdefgh", k=40)), 40) for _ in range(50)]
    names = [strip(name(y), LEFT) for y in range(HEIGHT)]
    terminal = Terminal()
    for first in range(30):
        rows = zip(names, lines[first : first + HEIGHT], strict=True)
        terminal.draw(list(rows), scrolls=scrolls)
    return terminal


def test_less_is_sent_than_by_drawing_again() -> None:
    assert scroll(True, lambda _: "").sent < scroll(False, lambda _: "").sent / 3
    beside_a_list = scroll(True, lambda y: f"item {y}").sent
    assert beside_a_list < scroll(False, lambda y: f"item {y}").sent / 2


def test_nothing_is_moved_where_mending_costs_more() -> None:
    chosen = random.Random(2)
    names = [strip("".join(chosen.choices("abcdefgh", k=20)), 20) for _ in range(HEIGHT)]
    terminal = Terminal()
    lines = [strip(str(n), 40) for n in range(50)]
    for first in range(10):
        terminal.draw(list(zip(names, lines[first : first + HEIGHT], strict=True)), scrolls=True)
    assert terminal.scrolled == 0


def test_the_commonest_move_counts() -> None:
    assert find_shift([(5, 4), (6, 5), (7, 6), (8, 7), (9, 2)]) == Shift(4, 9, 1)
    assert find_shift([(4, 5), (5, 6), (6, 7), (7, 8)]) == Shift(4, 9, -1)
    assert find_shift([(5, 4), (6, 5), (7, 6)]) is None
    assert find_shift([(n, n) for n in range(9)]) is None


def test_both_halves_of_a_wide_character_are_drawn() -> None:
    maker = CellMaker(Pens(ColorSystem.TRUECOLOR))
    shown, wanted = (maker.cells(strip(f"ab{wide}cd", 6)) for wide in ("\u6f22", "\u5b57"))
    assert list(runs(shown, wanted)) == [(2, 4)]
    plain = maker.cells(strip("abcdef", 6))
    assert list(runs(plain, wanted)) == [(2, 6)]
    assert list(runs(wanted, plain)) == [(2, 6)]
    moved = maker.cells(strip("abc\u5b57d", 6))
    assert list(runs(wanted, moved)) == [(2, 5)]


def blanks(chosen: random.Random) -> Strip:
    """Blank stretches of any length and look between words."""
    looks = ("", "on blue", "red on green", "underline", "reverse on blue", "strike", "bold")
    segments: list[Segment] = []
    for _ in range(chosen.randrange(1, 6)):
        style = Style.parse(chosen.choice(looks))
        segments.append(
            Segment(" " * chosen.randrange(30) + chosen.choice(("", "a", "\u6f22")), style)
        )
    return Strip(segments).adjust_cell_length(WIDTH - LEFT)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_erased_cells_look_like_written_ones(seed: int) -> None:
    chosen = random.Random(seed)
    terminal, plain = Terminal(erases=True), Terminal()
    for _ in range(20):
        panes = [(blanks(chosen).crop(0, LEFT), blanks(chosen)) for _ in range(HEIGHT)]
        for one in (terminal, plain):
            one.draw(panes, scrolls=False)
        assert look(terminal) == look(plain)
    assert terminal.sent < plain.sent


def look(terminal: Terminal) -> list[list[tuple[object, ...]]]:
    """What is seen: of a blank cell without a line through or under it, only the background."""
    return [[_seen(cell) for cell in row] for row in terminal.cells()]


def _seen(cell: tuple[object, ...]) -> tuple[object, ...]:
    named = pyte.screens.Char(*cell)  # type: ignore[arg-type]
    plain = not (named.underscore or named.strikethrough or named.reverse)
    return (" ", named.bg) if named.data == " " and plain else cell


def test_what_is_not_seen_of_a_blank_is_not_sent() -> None:
    terminal = Terminal(erases=True)
    right = strip("", WIDTH - LEFT)

    def sent_by(style: str) -> int:
        before = terminal.sent
        terminal.draw([(strip(" " * LEFT, LEFT, style), right)] * HEIGHT, scrolls=False)
        return terminal.sent - before

    sent_by("red on blue")
    assert sent_by("bold green on blue") == 0
    assert sent_by("red on black") > 0
    assert sent_by("underline red on black") > 0
    assert sent_by("reverse red on black") > 0


def test_a_blank_between_words_keeps_their_pen() -> None:
    maker = CellMaker(Pens(ColorSystem.TRUECOLOR))
    row = Strip([Segment("two words", Style.parse("bold red on blue"))])
    written = ShownScreen(9, 1, maker).draw([PlacedStrip(0, 0, row)], (0, 0))
    assert "two words" in written
