"""Blocks as rows, without a screen."""

import random
from datetime import UTC, datetime

import pytest
from rich.cells import cell_len

from quarterdeck.transcript.blocks import (
    Block,
    MessageBlock,
    NoteBlock,
    ThoughtBlock,
    Turn,
    UserBlock,
)
from quarterdeck.transcript.text import Flow
from quarterdeck.tui.kit import highlight
from quarterdeck.tui.kit.highlight import code_lines
from quarterdeck.tui.kit.spans import (
    Emphasis,
    Line,
    Span,
    TextRole,
    fit,
    plain,
    wrap,
    wrap_hard,
)
from quarterdeck.tui.transcript_view.blocks import BlockShape, typed_rows
from quarterdeck.tui.transcript_view.layout import BlockStyle, rows_of
from quarterdeck.tui.transcript_view.markdown import Prose, draw, parse, safe_link
from quarterdeck.tui.transcript_view.viewport import Heights

TEXT = """# Title

Some **bold**, *thin*, ~~gone~~ and `code` [link](https://a.b/c) in one long paragraph that wraps.

- one
- two
  1. deep \u6f22\u5b57
  2. deeper

- loose

> quoted **text**
> goes on

| a | wide \u6f22\u5b57 |
|---|:-:|
| 1 | `x` |

```python
def f(x):
\treturn "\u6f22"  # why
```

    indented

---
<b>html</b> &amp; \\* end
"""


def width_of(row: Line) -> int:
    return sum(cell_len(span.text) for span in row)


def rows(text: str, width: int = 40) -> list[Line]:
    return draw(parse(text), width)


@pytest.mark.parametrize("width", [4, 11, 30, 80])
def test_no_row_is_wider_than_the_view(width: int) -> None:
    long = "\u6f22" * 99 + " " + "x" * 99 + " a" * 99
    for text in (long, f"- {long}", f"> {long}", f"```\n{long}\n```", f"# {long}"):
        assert all(width_of(row) <= max(width, 8) for row in rows(text, max(width, 8)))
    assert all(width_of(row) <= width for row in wrap([Span(long)], width))
    assert all(width_of(row) <= width for row in wrap_hard([Span(long)], width))
    assert width_of(fit((Span(long),), width)) <= width


def blocks_of(text: str) -> list[Block]:
    about = {"id": 1, "turn": Turn(), "at": datetime(2026, 1, 1, tzinfo=UTC)}
    flow = Flow()
    flow.add(text)
    return [
        NoteBlock(**about, text=text),
        UserBlock(**about, text=text),
        MessageBlock(**about, flow=flow),
        ThoughtBlock(**about, flow=flow),
    ]


@pytest.mark.parametrize("kind", range(4))
def test_of_an_endless_text_the_start_is_drawn(kind: int) -> None:
    """Megabytes of short lines would hold every key up for many seconds."""
    block = blocks_of("a b\n" * 50_000)[kind]
    drawn = plain(rows_of(block, BlockStyle(80, BlockShape.OPEN), None, Prose(80)))
    assert 20_000 < len(drawn) < 30_000
    assert "more characters are not shown" in drawn[-1]


def test_a_note_is_shown_in_full() -> None:
    note = NoteBlock(id=1, turn=Turn(), at=datetime(2026, 1, 1, tzinfo=UTC), text="The reason " * 9)
    drawn = rows_of(note, BlockStyle(30), None, Prose(30))
    assert all(width_of(row) <= 30 for row in drawn)
    first, *more = plain(drawn)
    assert first.startswith("\u00b7 The") and all(row.startswith("  ") for row in more)
    assert (
        " ".join(first.removeprefix("\u00b7").split() + " ".join(more).split()) == note.text.strip()
    )


def test_tables_shrink_to_the_view() -> None:
    text = "| a | b |\n|---|---|\n| " + "word " * 30 + " | " + "other " * 30 + "|"
    drawn = rows(text, 40)
    assert all(width_of(row) <= 40 for row in drawn) and len(drawn) > 5


def test_columns_are_set_as_asked_and_folded_rows_are_told_apart() -> None:
    shown = plain(rows("| a | num |\n|---|--:|\n| x | 1 |\n| y | 20 |", 40))
    assert shown == ["a  \u2502 num", "\u2500" * 3 + "\u253c" + "\u2500" * 4, *shown[2:]]
    assert shown[2:] == ["x  \u2502   1", "y  \u2502  20"]
    folded = plain(rows("| a |\n|---|\n| " + "word " * 9 + "|\n| b |", 20))
    assert folded[-2] == folded[1] and folded[-1].strip() == "b"


def test_a_table_of_too_many_columns_is_listed() -> None:
    head, cells = ("| " + " | ".join(f"{c}{n}" for n in range(12)) + " |" for c in "hc")
    shown = plain(rows(f"{head}\n{'|-' * 12}|\n{cells}\n{cells}", 40))
    assert shown[:2] == ["h0: c0", "h1: c1"] and len(shown) == 25 and shown[12] == ""


def test_task_lists_have_checks() -> None:
    assert plain(rows("- [ ] a\n- [X] b\n- [y] c")) == ["\u25cb a", "\u2713 b", "\u2022 [y] c"]


def test_typed_text_stays_and_its_fences_are_code() -> None:
    text = "look  at *this*:\n```python\ndef f(): ...\n\n```\n  - # as typed\n~~~\nopen `x`"
    drawn = typed_rows(text, 60)
    expected = ["look  at *this*:", "  def f(): ...", "  ", "  - # as typed", "  open `x`"]
    assert plain(drawn) == expected
    assert TextRole.KEYWORD in {span.role for span in drawn[1]}
    assert plain(typed_rows("a ``` b\n``` x ` y", 60)) == ["a ``` b", "``` x ` y"]


def test_markdown_as_text() -> None:
    shown = plain(rows(TEXT, 60))
    assert shown[0] == "Title"
    assert "\u2022 one" in shown and "  1. deep \u6f22\u5b57" in shown
    assert "\u258e quoted text goes on" in shown
    assert "  def f(x):" in shown and '      return "\u6f22"  # why' in shown
    assert shown[-1] == "<b>html</b> & * end"


def test_emphasis_and_links() -> None:
    spans = {span.text: span for span in rows("**b** *i* ~~s~~ `c` [l](https://x.y)")[0]}
    assert spans["b"].marks is Emphasis.BOLD and spans["i"].marks is Emphasis.ITALIC
    assert spans["s"].marks is Emphasis.STRIKE and spans["c"].role is TextRole.INLINE
    assert spans["l"].link == "https://x.y" and spans["l"].role is TextRole.LINK


@pytest.mark.parametrize(
    ("source", "address"),
    [
        ("see https://x.y/a_(b)?c=1&d=*e, then", "https://x.y/a_(b)?c=1&d=*e"),
        ("(http://localhost:3000)", "http://localhost:3000"),
        ("`https://x.y/z`", "https://x.y/z"),
        ("**https://x.y/z**", "https://x.y/z"),
        ("https://x.y/\u6f22", "https://x.y/"),
        ("file:///etc/passwd x.y", ""),
    ],
)
def test_an_address_in_the_text_is_a_link(source: str, address: str) -> None:
    (row,) = rows(source)
    assert [span.text for span in row if span.link] == ([address] if address else [])
    assert all(span.link == span.text for span in row if span.link)


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "file:///etc/passwd", "https://a\x1b\\b", "https://a b", ""]
)
def test_unsafe_links_are_text(url: str) -> None:
    assert safe_link(url) == ""


def test_code_has_colors_and_any_language_is_survived() -> None:
    colored = code_lines("def f():\n    return 'a'", "python")
    assert {span.role for row in colored for span in row} >= {
        TextRole.KEYWORD,
        TextRole.STRING,
        TextRole.NAME,
    }
    assert plain(code_lines("a\n\nb", "no-such-language")) == ["a", "", "b"]
    source = "\n".join(f"x = {n}" for n in range(1_000))
    assert plain(code_lines(source, "python")) == source.split("\n")


def test_code_that_takes_too_long_to_color_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some lexers take time with the square of the length."""
    monkeypatch.setattr(highlight, "_CODE_SECONDS", 0.0)
    monkeypatch.setattr(highlight, "_FILE_SECONDS", 0.0)
    source = "\n".join(f"def slow_{n}(): return 'a'" for n in range(300))
    colored = code_lines(source, "python")
    assert plain(colored) == source.split("\n")
    assert {span.role for row in colored for span in row} == {TextRole.CODE}
    assert highlight.file_lines("slow.py", source.split("\n")) is None


@pytest.mark.parametrize("seed", range(15))
def test_streamed_markdown_is_drawn_like_the_whole(seed: int) -> None:
    chosen = random.Random(seed)
    prose = Prose(50)
    at = 0
    while at < len(TEXT):
        at += chosen.randrange(1, 20)
        assert prose.rows(TEXT[:at]) == rows(TEXT[:at], 50), TEXT[:at]


def test_hostile_markdown_is_drawn_in_time() -> None:
    started = datetime.now(UTC)
    for text in ("[" * 50_000, "*a **b " * 10_000, "> " * 5_000, "`" * 30_000, "|" * 20_000):
        rows(text, 80)
    assert (datetime.now(UTC) - started).total_seconds() < 10


@pytest.mark.parametrize("mark", ["*", "**", "~~"])
def test_marks_within_marks_are_drawn_however_deep(mark: str) -> None:
    text = f"{mark}a " * 600 + f"a{mark} " * 600
    assert "".join(plain(rows(text))).replace(" ", "") == text.replace(" ", "")
    assert plain(rows(f"{mark}a " * 20 + f"a{mark} " * 20, 200)) == [" ".join("a" * 40)]


@pytest.mark.parametrize(
    "table",
    [
        "|a|b|\n|-|-|\n" + "|x|y|\n" * 2_600,
        "|a" * 60 + "|\n" + "|-" * 60 + "|\n" + "|x\n" * 100,
        "|a" * 2_000 + "|\n" + "|-" * 2_000 + "|\n|x|\n",
    ],
    ids=["rows", "short rows", "columns"],
)
def test_a_table_of_too_many_cells_is_shown_as_code(table: str) -> None:
    drawn = rows(f"before\n\n{table}\nafter\n\n|c|d|\n|-|-|\n|1|2|\n", 9_000)
    assert plain(drawn) == [
        "before", "", *(f"  {row}" for row in table.splitlines()), "",
        "after", "", "c  \u2502 d ", "\u2500\u2500\u2500\u253c\u2500\u2500\u2500", "1  \u2502 2 ",
    ]  # fmt: skip
    assert all(
        span.role is TextRole.CODE for row in drawn[2:-7] for span in row if span.text.strip()
    )


def test_only_so_many_marks_of_a_text_are_drawn() -> None:
    drawn = plain(rows("**a**\n\n" * 4_000, 80))
    assert (drawn[0], drawn[4_998], drawn[5_000]) == ("a", "a", "**a**")


def test_the_rest_of_a_long_text_is_shown_as_it_is() -> None:
    prose, text, at = Prose(60), "*a*\n\n" * 3_000, 0
    whole = Prose(60).rows(text)
    drawn = plain(whole)
    assert drawn[2_998:3_000] == ["a", ""]
    assert drawn[3_000].startswith("\u2026 the rest of this text is too long")
    assert drawn[3_001:] == ["*a*", ""] * 1_500
    while at < len(text):
        at += 4_999
        shown = prose.rows(text[:at])
    assert shown == whole


@pytest.mark.parametrize("seed", range(10))
def test_heights_are_sums(seed: int) -> None:
    chosen = random.Random(seed)
    plain_list = [chosen.randrange(5) for _ in range(chosen.randrange(40))]
    heights = Heights(plain_list)
    for _ in range(60):
        if plain_list and chosen.random() < 0.6:
            index, value = chosen.randrange(len(plain_list)), chosen.randrange(9)
            plain_list[index] = heights[index] = value
        else:
            plain_list.append(3)
            heights.append(3)
    assert heights.total == sum(plain_list)
    assert [heights.before(n) for n in range(len(plain_list) + 1)] == [
        sum(plain_list[:n]) for n in range(len(plain_list) + 1)
    ]
    lines = [(i, k) for i, height in enumerate(plain_list) for k in range(height)]
    assert [heights.at(n) for n in range(len(lines))] == lines


def test_words_are_wrapped_a_row_at_a_time_as_one_by_one() -> None:
    """Letters that are not ASCII are laid out word by word."""
    drawn = random.Random(3)
    for _ in range(5_000):
        texts = ["".join(drawn.choices("ab  -", k=drawn.randint(0, 40))) for _ in range(3)]
        roles = drawn.choices((TextRole.TEXT, TextRole.CODE), k=3)
        width = drawn.randint(1, 14)
        spans = [Span(text, role) for text, role in zip(texts, roles, strict=True)]
        others = [span._replace(text=span.text.replace("a", "\u00e4")) for span in spans]
        found = [
            tuple(span._replace(text=span.text.replace("\u00e4", "a")) for span in row)
            for row in wrap(others, width)
        ]
        assert wrap(spans, width) == found
