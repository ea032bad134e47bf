"""Reading a terminal: search, marking, words, links, while the program goes on printing."""

from collections.abc import Iterator

import pytest

from quarterdeck.tui.addresses import cut_address
from quarterdeck.tui.terminal.core import Attribute, SelectionKind, Step
from quarterdeck.tui.terminal.ghostty import GhosttyCore
from quarterdeck.tui.terminal.ghostty_reader import Words

LINES = b"".join([b"line %d word-%d Needle\r\n" % (n, n) for n in range(200)])


@pytest.fixture
def core() -> Iterator[GhosttyCore]:
    made = GhosttyCore(40, 10)
    yield made
    made.close()


def marked(core: GhosttyCore, attribute: Attribute) -> list[tuple[int, str]]:
    """The rows and texts that are marked so."""
    return [
        (y, run.text.rstrip())
        for y, row in core.take_rows()
        for run in row
        if run.style.attributes & attribute
    ]


def line_here(core: GhosttyCore) -> str:
    """The line in which the cursor is."""
    core.invalidate()
    rows = dict(core.take_rows())
    return "".join([run.text for run in rows[core.state().cursor.y]]).rstrip()


def test_ten_thousand_lines_are_kept(core: GhosttyCore) -> None:
    core.feed(b"".join([b"line %d of the output\r\n" % n for n in range(12_000)]))
    core.take_rows()
    assert core.state().scrollback.total > 9_500


def test_search_goes_back_from_the_cursor_and_around(core: GhosttyCore) -> None:
    core.feed(LINES)
    core.take_rows()
    core.start_reading()
    core.find("needle")
    assert core.state().reading[1:] == (200, 1)
    assert line_here(core).startswith("line 199 ")
    core.invalidate()
    assert len(marked(core, Attribute.MATCH)) == 9
    core.read(Step.NEXT_MATCH)
    assert line_here(core).startswith("line 198 ")
    core.invalidate()
    assert marked(core, Attribute.MATCH_HERE) == [(7, "Needle")]
    core.read(Step.PREVIOUS_MATCH)
    core.read(Step.PREVIOUS_MATCH)
    assert core.state().reading[1:] == (200, 200)
    assert line_here(core).startswith("line 0 ")
    core.find("word-1")  # a search from here finds nothing older than line 0
    assert line_here(core).startswith("line 199 ")


@pytest.mark.parametrize("size", [(50, 10), (40, 8), (40, 12)])
def test_a_search_stays_at_its_match_in_another_size(
    core: GhosttyCore, size: tuple[int, int]
) -> None:
    core.feed(LINES)
    core.take_rows()
    core.start_reading()
    core.find("needle")
    core.read(Step.NEXT_MATCH)
    core.resize(*size)
    core.take_rows()
    assert core.state().reading[1:] == (200, 2)
    assert line_here(core).startswith("line 198 ")
    core.read(Step.NEXT_MATCH)
    assert core.state().reading[1:] == (200, 3)
    assert line_here(core).startswith("line 197 ")


@pytest.mark.parametrize(
    ("step", "number"), [(Step.NEXT_MATCH, 197), (Step.PREVIOUS_MATCH, 199)], ids=["older", "newer"]
)
@pytest.mark.parametrize("times", [1, 15])
def test_a_search_goes_on_from_the_cursor_after_newer_matches(
    core: GhosttyCore, times: int, step: Step, number: int
) -> None:
    core.feed(LINES)
    core.take_rows()
    core.start_reading()
    core.find("needle")
    core.read(Step.NEXT_MATCH)
    core.feed(LINES * times)
    core.take_rows()
    assert line_here(core).startswith("line 198 ")
    newer, total = 200 * times, 200 * (times + 1)
    assert core.state().reading[1:] in ((total, newer + 2), (total, 0))
    core.read(step)
    assert core.state().reading[1:] == (total, newer + 200 - number)
    assert line_here(core).startswith(f"line {number} ")


def test_typing_a_search_begins_where_it_began(core: GhosttyCore) -> None:
    core.feed(b"abc\r\nabx\r\nab\r\n")
    core.take_rows()
    core.start_reading()
    found = []
    for text in ("a", "ab", "abx", "abxy", "ab", ""):
        core.find(text)
        found.append(line_here(core))
    assert found == ["ab", "ab", "abx", "", "ab", ""]
    assert core.state().reading.matches == 0


def test_what_is_printed_does_not_move_what_is_read(core: GhosttyCore) -> None:
    core.feed(LINES)
    core.take_rows()
    core.start_reading()
    core.read(Step.UP)
    before = line_here(core), core.state().cursor
    core.feed(b"more\r\n" * 500)
    assert (line_here(core), core.state().cursor) == before
    assert core.state().scrollback.back == 500
    core.stop_reading()
    core.take_rows()
    assert core.state().scrollback.back == 0 and core.state().reading is None


def test_what_is_read_may_be_thrown_away(core: GhosttyCore) -> None:
    core.feed(LINES)
    core.take_rows()
    core.start_reading()
    core.read(Step.OLDEST)
    core.read(Step.MARK_CELLS)
    core.feed(b"more\r\n" * 30_000)
    core.take_rows()
    assert 0 <= core.state().cursor.y < 10
    core.read(Step.DOWN)
    core.feed(b"\x1b[3J\x1bc")
    core.take_rows()
    core.read(Step.UP)
    core.find("x")
    assert core.state().cursor.visible


def test_marking_by_cells_words_and_lines(core: GhosttyCore) -> None:
    core.feed("one two-three\r\nvier 漢字 fünf\r\nsix seven\r\n".encode())
    core.take_rows()
    core.start_reading()
    for step in (Step.OLDEST, Step.NEXT_WORD, Step.MARK_CELLS, Step.WORD_END):
        core.read(step)
    assert core.selected_text() == "two"
    core.read(Step.DOWN)
    assert core.selected_text() == "two-three\nvier 漢"
    core.read(Step.MARK_LINES)
    assert core.selected_text() == "one two-three\nvier 漢字 fünf"
    core.read(Step.UP)
    core.read(Step.MARK_WORD)
    core.read(Step.LINE_START)
    assert core.selected_text() == "one two-three"[: len(core.selected_text())]
    assert core.selected_text().startswith("one two")
    core.read(Step.UNMARK)
    assert core.selected_text() == "" and not core.state().reading.marking


def test_marking_goes_on_from_the_other_end(core: GhosttyCore) -> None:
    core.feed(b"abcdefgh\r\n")
    core.take_rows()
    core.start_reading()
    for step in (Step.OLDEST, *[Step.RIGHT] * 3, Step.MARK_CELLS, *[Step.RIGHT] * 2, Step.SWAP):
        core.read(step)
    assert core.state().cursor.x == 3
    core.read(Step.LEFT)
    assert core.selected_text() == "cdef"


def test_marking_reaches_over_the_scrollback(core: GhosttyCore) -> None:
    core.feed(LINES)
    core.take_rows()
    core.start_reading()
    for step in (Step.LINE_START, Step.MARK_CELLS, Step.OLDEST):
        core.read(step)
    assert core.selected_text().count("Needle") == 200


def test_dragging_goes_by_the_unit_of_the_press(core: GhosttyCore) -> None:
    core.feed(b"one two three\r\nfour five six\r\n")
    core.take_rows()
    core.select_from(5, 0, SelectionKind.WORD)
    core.select_to(6, 1)
    assert core.selected_text() == "two three\nfour five"
    core.select_to(1, 0)
    assert core.selected_text() == "one two"
    core.select_from(5, 1, SelectionKind.LINE)
    core.select_to(5, 0)
    assert core.selected_text() == "one two three\nfour five six"


def test_steps_stay_within_what_there_is(core: GhosttyCore) -> None:
    core.feed("a漢b".encode())
    core.take_rows()
    core.start_reading()
    for step in Step:
        core.read(step)
        core.take_rows()
        cursor = core.state().cursor
        assert 0 <= cursor.x < 40 and 0 <= cursor.y < 10
    for step in (Step.OLDEST, Step.RIGHT):
        core.read(step)
    assert core.state().cursor.x == 1
    core.read(Step.RIGHT)
    assert core.state().cursor.x == 3


def test_links_of_programs_and_in_text(core: GhosttyCore) -> None:
    core.feed(
        b"see https://example.org/a_(b). "
        b"\x1b]8;;https://other.example/\x07good\x1b]8;;\x07\r\n"
        + b"-" * 30
        + b" http://long.example/path/to/nowhere?x=1&y=2, ok\r\n"
        + b"\r\n" * 20
    )
    core.take_rows()
    core.start_reading()
    found = []
    for _ in range(4):
        core.read(Step.PREVIOUS_LINK)
        found.append(core.link_here())
    assert found == [
        "http://long.example/path/to/nowhere?x=1&y=2",
        "https://other.example/",
        "https://example.org/a_(b)",
        "https://example.org/a_(b)",
    ]
    core.read(Step.NEXT_LINK)
    assert core.link_here() == "https://other.example/"
    core.take_rows()
    cursor = core.state().cursor
    assert core.link_at(cursor.x, cursor.y) == "https://other.example/"
    assert core.link_at(39, 9) == ""


@pytest.mark.parametrize(
    ("word", "address"),
    [
        ("https://example.org", "https://example.org"),
        ("(https://example.org/a),", "https://example.org/a"),
        ("[see](http://example.org/x_(y))", "http://example.org/x_(y)"),
        ("url=https://example.org/?q=1;", "https://example.org/?q=1"),
        ("mailto:someone@example.org.", "mailto:someone@example.org"),
        ("javascript:alert(1)", ""),
        ("example.org", ""),
        ("https://", ""),
    ],
)
def test_an_address_in_a_word(word: str, address: str) -> None:
    assert cut_address(word) == address


def test_words_over_the_ends_of_rows() -> None:
    rows = ["one, two", "        ", "  three "]
    words = Words(lambda y: rows[y], 8, 3)
    place, seen = (0, 0), []
    for _ in range(5):
        place = words.next(place)
        seen.append(place)
    assert seen == [(3, 0), (5, 0), (2, 2), (2, 2), (2, 2)]
    assert words.end((0, 0)) == (2, 0) and words.end((7, 0)) == (6, 2)
    assert words.previous((2, 2)) == (5, 0) and words.previous((0, 0)) == (0, 0)


def test_the_clipboard_is_offered_and_never_read(core: GhosttyCore) -> None:
    core.feed(b"\x1b]52;c;Zmlyc3Q=\x07\x1b]52;p;c2Vjb25k\x07\x1b]52;c;?\x07")
    assert core.take_clipboard() == "second"
    assert core.take_clipboard() is None and core.take_replies() == b""
