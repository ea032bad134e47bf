"""A line that is typed: what the terminal echoes of it, and which lines are complete."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.plain.line_editor import LineEditor


@pytest.mark.parametrize(
    ("typed", "echo", "lines", "text"),
    [
        ("list\r", "list\n", ["list"], ""),
        ("a\nb\nc", "a\nb\nc", ["a", "b"], "c"),
        ("ab\x7f", "ab\b \b", [], "a"),
        ("\x7f\b", "", [], ""),
        ("日\x7f", "日\b \b\b \b", [], ""),
        ("e\u0301\x7f", "e\u0301\b \b", [], ""),
        ("one two \x17", "one two " + "\b \b" * 4, [], "one "),
        ("one\x15", "one" + "\b \b" * 3, [], ""),
        ("ab\x12", "ab\nab", [], "ab"),
        ("a\tb", "a b", [], "a b"),
        ("a\x1b[A\x1bOP\x1b[1;5Cb", "ab", [], "ab"),
        ("a\x00\x07\u202eb", "ab", [], "ab"),
    ],
)
def test_keys(typed: str, echo: str, lines: list[str], text: str) -> None:
    editor = LineEditor()
    assert editor.feed(typed) == (echo, lines)
    assert editor.text == text and not editor.ended


def test_a_key_whose_characters_come_one_by_one_is_no_text() -> None:
    editor = LineEditor()
    assert [editor.feed(character) for character in "\x1b[Ax"] == [("", [])] * 3 + [("x", [])]


def test_the_end_of_input_is_only_on_an_empty_line() -> None:
    editor = LineEditor()
    editor.feed("a\x04")
    assert not editor.ended
    editor.feed("\x7f\x04")
    assert editor.ended


def test_nothing_of_a_secret_is_echoed() -> None:
    editor = LineEditor()
    editor.hidden = True
    assert editor.feed("key\x7f\x12\r") == ("\n", ["ke"])


@given(st.text())
def test_no_control_sequence_is_ever_echoed(typed: str) -> None:
    echo, lines = LineEditor().feed(typed)
    assert set(echo) - {"\n", "\b"} == {c for c in echo if c.isprintable()}
    assert all(line.isprintable() for line in lines)
