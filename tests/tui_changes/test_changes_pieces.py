"""Lines of a difference before they are on a screen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from quarterdeck.store.changes_diff import RepositoryChange, parse_changes
from quarterdeck.tui.changes.document import (
    Document,
    ItemAddress,
    PlacedSection,
    cut,
    difference,
    fold,
    matches,
)
from quarterdeck.tui.changes.drawing import Colors
from quarterdeck.tui.changes.model import DiffSection, ItemKind, sections_of, visible
from quarterdeck.tui.kit.highlight import language_of
from quarterdeck.tui.kit.spans import Span, plain
from tests.tui_changes.material import EVERYTHING

WIDE = st.text(st.sampled_from("ab 你😀é\u0301x_"), max_size=60)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain", "plain"),
        ("a\tb", "a   b"),
        ("end\r", "end␍"),
        ("\x1b[31mred", "␛[31mred"),
        ("\x9b31m", "<U+009B>31m"),
        ("if a:\u202e# x", "if a:<U+202E># x"),
        ("zero\u200bwidth\u3164", "zero<U+200B>width<U+3164>"),
        ("\ud800", "<U+D800>"),
        ("你好", "你好"),
    ],
)
def test_what_cannot_be_seen_is_spelled_out(raw: str, shown: str) -> None:
    assert visible(raw) == shown


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    shown = visible(text)
    assert all(c.isprintable() or c in " \u3000\xa0" or c.isspace() for c in shown)
    assert not set(shown) & {"\x1b", "\n", "\r", "\t", "\x07", "\u202e", "\u2028", "\u0085"}


def test_a_line_without_an_end_is_shortened() -> None:
    assert visible("x" * 5000) == "x" * 2000 + " ... 3000 more characters"


@pytest.mark.parametrize(
    ("text", "other", "found"),
    [
        ("limit = 3", "limit = 30", "3"),
        ("limit = 30", "limit = 3", "30"),
        ("return None", "return True", "None"),
        ("a.first_name", "a.last_name", "first_name"),
        ("call(a)", "call(a, b)", ""),
        ("call(a, b)", "call(a)", ", b"),
        ("same", "same", ""),
        ("one thing", "quite another", ""),
    ],
)
def test_words_that_differ_stand_out(text: str, other: str, found: str) -> None:
    place = difference(text, other)
    assert (text[place[0] : place[1]] if place else "") == found


def test_what_was_searched_for_stands_out() -> None:
    spans = cut((Span("def Login"), Span("(login)")), matches("def Login(login)", "login"))
    assert [(span.text, span.target) for span in spans] == [
        ("def ", ""),
        ("Login", "match"),
        ("(", ""),
        ("login", "match"),
        (")", ""),
    ]
    assert len(list(matches("Login login", "Login"))) == 1


@given(st.lists(WIDE, max_size=5), st.integers(2, 12))
def test_rows_do_not_depend_on_spans(parts: list[str], width: int) -> None:
    rows = fold([Span(part) for part in parts], width)
    assert plain([tuple(row) for row in rows]) == plain(
        [tuple(row) for row in fold([Span("".join(parts))], width)]
    )
    assert "".join(plain([tuple(row) for row in rows])) == "".join(parts)
    assert all(sum(cell_len(c) for c in text) <= width for text in plain(map(tuple, rows)))


@pytest.mark.parametrize("split", [False, True])
@given(lines=st.lists(st.builds(str.__add__, st.sampled_from("+- "), WIDE), min_size=1))
def test_every_line_of_a_hunk_is_shown_once(lines: list[str], split: bool) -> None:
    old = sum(line[0] != "+" for line in lines)
    new = sum(line[0] != "-" for line in lines)
    head = f"diff --git a/x b/x\n@@ -1,{old} +1,{new} @@\n"
    [change] = parse_changes(head + "\n".join(lines) + "\n")
    placed = PlacedSection(DiffSection(RepositoryChange("shop"), change), 100, split=split)
    shown = [
        index
        for item in placed.items
        for index in dict.fromkeys([item.line, item.partner] if split else [item.line])
        if item.kind in {ItemKind.LINE, ItemKind.PAIR} and index >= 0
    ]
    assert sorted(shown) == list(range(len(lines)))


def test_colors_never_change_the_text() -> None:
    for change in parse_changes(EVERYTHING):
        section = DiffSection(RepositoryChange("shop"), change)
        for index, line in enumerate(section.lines):
            if line.sign != "\\":
                spans = Colors().line(section, index)
                assert "".join(span.text for span in spans) == visible(line.text)


@pytest.mark.parametrize(
    ("path", "language"),
    [("a/b.py", "python"), ("Makefile", "make"), ("x.rs", "rust"), ("LICENSE", "")],
)
def test_the_language_is_that_of_the_name(path: str, language: str) -> None:
    found = language_of(path)
    assert found == language or (language == "make" and "make" in found)


def test_a_document_finds_rows_and_items() -> None:
    repository = RepositoryChange("shop", files=parse_changes(EVERYTHING))
    document = Document()
    document.resize(60, split=False)
    document.show(sections_of([repository], [], {}, {}))
    row = 0
    for address in [ItemAddress(0, 0), *document.walk(ItemAddress(0, 0), 1)]:
        assert document.row_of(address) == row
        for inside in range(document.height_of(address)):
            assert document.locate(row + inside) == (address, inside)
        row += document.height_of(address)
    assert document.height == row
    assert document.locate(row) is None
    assert list(document.walk(ItemAddress(0, 0), -1)) == []


def test_a_file_that_is_the_same_keeps_its_rows() -> None:
    document = Document()
    document.resize(60, split=False)
    both = [RepositoryChange("shop", files=parse_changes(EVERYTHING)) for _ in range(2)]
    document.show(sections_of([both[0]], [], {}, {}))
    before = document.placed[1]
    document.show(sections_of([both[1]], [], {}, {}))
    assert document.placed[1] is before
