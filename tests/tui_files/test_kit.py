"""The parts that all screens are made of."""

import importlib
import pkgutil
from collections import Counter
from collections.abc import Iterator

from textual.widget import Widget

import quarterdeck.tui
from quarterdeck.tui.kit.rows import ColumnCell, columns
from quarterdeck.tui.kit.spans import TextRole, plain


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
