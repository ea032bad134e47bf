"""Texts as rows: cleaned, folded, colored, and searched."""

import pytest

from quarterdeck.tui.kit.highlight import can_color, file_lines
from quarterdeck.tui.kit.pages import LONGEST_ROW, MarkdownPage, OutputPage, SourcePage
from quarterdeck.tui.kit.spans import TextRole, next_row, plain, spans_in
from quarterdeck.tui.panes.files import marked_path, matched


def rows(page: SourcePage | MarkdownPage | OutputPage) -> list[str]:
    return plain(page.row(index) for index in range(len(page)))


def test_a_source_has_a_row_for_each_line_and_nothing_that_a_terminal_obeys() -> None:
    page = SourcePage("a\tb\n\x1b]52;c;aGk=\x07c\x1b[2J\nd\u202ee\n")
    assert rows(page) == ["a   b", "c", "de"]
    assert [page.text(index) for index in range(3)] == ["a\tb", "c", "de"]


def test_an_endless_line_is_cut_and_says_so_but_is_copied_whole() -> None:
    page = SourcePage("x" * (LONGEST_ROW + 1_000) + "\nshort")
    assert rows(page)[0].endswith("x… and 1,000 characters more")
    assert len(rows(page)[0]) <= page.width
    assert len(page.text(0)) == LONGEST_ROW + 1_000


def test_colors_know_a_text_over_many_lines() -> None:
    lines = ['"""begins', *["within"] * 500, 'ends"""', "def name(): return 3"]
    colored = file_lines("a.py", lines)
    assert colored is not None and plain(colored) == lines
    assert {span.role for row in colored[:502] for span in row} == {TextRole.STRING}
    assert [span.role for span in colored[502]][:3] == [
        TextRole.KEYWORD,
        TextRole.CODE,
        TextRole.NAME,
    ]


@pytest.mark.parametrize(
    ("name", "first", "known"),
    [
        ("Makefile", "all:", True),
        ("run", "#!/usr/bin/env python3", True),
        ("x.unheard", "a", False),
    ],
)
def test_a_language_is_known_by_name_or_first_line(name: str, first: str, known: bool) -> None:
    assert (file_lines(name, [first, ""]) is not None) == known


def test_tabs_keep_their_stops_in_colored_lines() -> None:
    page = SourcePage("x = 1\t# one\n\ty = 2")
    page.colors = file_lines("a.py", page.lines)
    assert rows(page) == ["x = 1   # one", "    y = 2"]


def test_what_would_take_seconds_is_not_colored() -> None:
    assert can_color(["a"] * 1_000)
    assert not can_color(["a" * 100] * 5_000)
    assert not can_color(["a" * 3_000])


def test_output_grows_folds_and_lets_a_return_overwrite_its_line() -> None:
    page = OutputPage("one\n10%\r2")
    page.lay_out(10)
    page.append("0%\r30%")
    page.append("\nlong " + "y" * 12)
    grown = rows(page)
    page.lay_out(20)
    page.lay_out(10)
    assert grown == rows(page) == ["one", "30%", "long yyyyy", "yyyyyyy"]


def test_markdown_is_folded_anew_for_another_width() -> None:
    page = MarkdownPage("# Title\n\nsome words here\n")
    page.lay_out(40)
    assert rows(page) == ["Title", "", "some words here"]
    page.lay_out(10)
    assert rows(page) == ["Title", "", "some words", "here"]


def test_small_letters_find_large_ones_and_not_the_other_way() -> None:
    assert spans_in("Total total", "total") == [(0, 5), (6, 11)]
    assert spans_in("Total total", "Total") == [(0, 5)]
    lines = ["a", "needle", "b", "needle"]
    assert next_row(lines.__getitem__, 4, "needle", 2, 1) == 3
    assert next_row(lines.__getitem__, 4, "needle", 0, -1) == 3
    assert next_row(lines.__getitem__, 4, "none", 0, 1) is None


def test_what_matched_stands_out_in_a_path() -> None:
    path = "src/shop/basket.py"
    assert "".join(path[at] for at in sorted(matched(path, "shop bask"))) == "shopbask"
    assert "".join(path[at] for at in sorted(matched(path, "sbpy"))) == "sbpy"
    assert matched(path, "zz") == set()
    assert plain([marked_path(path, "bask")]) == [path]
