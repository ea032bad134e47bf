"""The parts that all screens are made of."""

import importlib
import pkgutil
from collections import Counter
from collections.abc import Iterator

import pytest
from rich.cells import cell_len
from textual.widget import Widget

import quarterdeck.tui
from quarterdeck.transcript.text import name_line
from quarterdeck.tui.kit.rows import ColumnCell, Row, columns
from quarterdeck.tui.kit.spans import Span, TextRole, plain
from quarterdeck.tui.text import end_of, fit


def _widgets(kind: type[Widget]) -> Iterator[type[Widget]]:
    for one in kind.__subclasses__():
        yield one
        yield from _widgets(one)


def test_no_two_widgets_have_the_same_name() -> None:
    # Styles are found by the name of a class: the look of one would depend on whether the other was seen before.
    for module in pkgutil.walk_packages(quarterdeck.tui.__path__, "quarterdeck.tui."):
        importlib.import_module(module.name)
    ours = {kind for kind in _widgets(Widget) if kind.__module__.startswith("quarterdeck.tui")}
    names = Counter(kind.__name__ for kind in ours)
    assert len(ours) > 50
    assert [name for name, count in names.items() if count > 1] == []


def test_columns_fill_the_width_and_keep_their_blanks() -> None:
    cells = (
        ColumnCell(" ● "),
        ColumnCell("a long name", TextRole.NAME, 6),
        ColumnCell(" "),
        ColumnCell("  rest", width=-1),
    )
    assert plain([columns(20, *cells)]) == [" ● a lon…   rest    "]
    assert plain([columns(12, *cells)]) == [" ● a lon…  …"]
    assert plain([columns(5, *cells)]) == [" ● a…"]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("unit", ["a", "\u6f22", "e\u0301", "\x1b", "\u200b"])
def test_of_names_of_megabytes_only_the_part_that_is_shown_is_measured(unit: str) -> None:
    """A hostile service may send such: each took seconds, at every key."""
    text = unit * 2_000_000
    for _ in range(30):
        shown = [fit(text, 40), end_of(text, 40), name_line(text)[:20]]
        shown += plain([columns(40, ColumnCell(text, width=-1)), columns(40, ColumnCell(text))])
        if unit.isprintable():
            shown += plain(Row("k", (Span(text),)).lines(40, 1))
        assert all(cell_len(one) <= 40 for one in shown)


def test_the_end_of_a_text_is_in_so_many_cells() -> None:
    assert [end_of("src/main.py", width) for width in (11, 10, 3, 1)] == [
        *("src/main.py", "\u2026c/main.py", "\u2026py", "\u2026")
    ]
    assert end_of("\u6f22\u5b57\u6f22", 5) == "\u2026\u5b57\u6f22"
    assert end_of("\u6f22\u5b57\u6f22", 4) == "\u2026\u6f22"
    assert cell_len(end_of("abc" + "\u2600\ufe0f" * 6, 8)) <= 8
