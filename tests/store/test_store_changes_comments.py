"""Comments on changes: where they stand, how they are kept, and what is sent."""

from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.store.changes_comments import (
    MOST_QUOTED,
    Comment,
    CommentsOnDisk,
    find_lines,
    lines_of,
    message_of,
    whole_file,
)
from quarterdeck.store.changes_diff import Numbered, parse_changes
from quarterdeck.store.disk import ClientDisk

REPLICA = UUID(int=7)
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def change(*lines: str, start: int = 1) -> list[Numbered]:
    old = sum(line[0] in " -" for line in lines)
    new = sum(line[0] in " +" for line in lines)
    head = f"diff --git a/x b/x\n@@ -{start},{old} +{start},{new} @@\n"
    [found] = parse_changes(head + "\n".join(lines) + "\n")
    return found.numbered()


def comment(*chosen: Numbered, text: str = "Why?", path: str = "x", key: str = "k") -> Comment:
    lines = lines_of("shop", path, chosen)
    assert lines is not None
    return Comment(key=key, text=text, created_at=NOON, **lines.model_dump())


BEFORE = change(" a", "-b", "+c", "+d", " e")


def test_a_comment_knows_its_lines() -> None:
    assert comment(BEFORE[2], BEFORE[3]).where == "lines 2-3"
    assert comment(BEFORE[1]).where == "line 2 before the change"
    assert comment(*BEFORE[1:3]).where == "line 2"
    assert comment(*BEFORE[1:3]).quoted == ["-b", "+c"]
    assert lines_of("shop", "x", change("+a", "\\ No newline at end of file")[1:]) is None


def test_a_comment_on_a_whole_file_quotes_nothing() -> None:
    lines = whole_file("shop", "x")
    said = Comment(key="w", text="Split it.", created_at=NOON, **lines.model_dump())
    text = message_of([comment(BEFORE[1]), said], set(), "", several=False)
    assert "1. `x`, as a whole\n\nSplit it.\n\n2. `x`, line 2 before the change" in text
    assert find_lines(said, BEFORE) is None


def test_a_comment_follows_its_lines() -> None:
    said = comment(BEFORE[2], BEFORE[3])
    moved = change("+0", " a", "-b", "+c", "+d", " e")
    assert find_lines(said, moved) == range(3, 5)


def test_of_the_same_lines_the_nearest_counts() -> None:
    lines = change("+x", "+c", "+y", "+c", "+z", "+c")
    said = comment(lines[3])
    assert find_lines(said, lines) == range(3, 4)
    assert find_lines(said, change("+c", "+q", "+q", "+q", "+c")) == range(4, 5)


def test_a_comment_is_outdated_when_its_lines_are_gone() -> None:
    said = comment(BEFORE[2], BEFORE[3])
    assert find_lines(said, change(" a", "-b", "+c", "+D", " e")) is None
    assert find_lines(said, []) is None


@given(st.lists(st.sampled_from(["+a", "+b", " c", "-d"]), min_size=1, max_size=12), st.data())
def test_lines_are_found_where_they_are(rows: list[str], data: st.DataObject) -> None:
    lines = change(*rows)
    first = data.draw(st.integers(0, len(lines) - 1))
    last = data.draw(st.integers(first, len(lines) - 1))
    found = find_lines(comment(*lines[first : last + 1]), lines)
    assert found is not None
    assert [lines[at][0::3] for at in found] == [line[0::3] for line in lines[first : last + 1]]


def test_comments_are_one_message_in_the_order_of_the_files() -> None:
    second = comment(BEFORE[1], text="Keep it.\n", path="src/z.py", key="2")
    first = comment(BEFORE[2], BEFORE[3], text="Why?\nReally.", path="src/a.py", key="1")
    assert message_of([second, first], {"2"}, " All in all fine. ", several=False) == (
        "All in all fine.\n\n"
        "Comments on your changes:\n\n"
        "1. `src/a.py`, lines 2-3\n\n```diff\n+c\n+d\n```\n\nWhy?\nReally.\n\n"
        "2. `src/z.py`, line 2 before the change (changed since)\n\n```diff\n-b\n```\n\nKeep it."
    )
    assert "`src/a.py` in `shop`, lines" in message_of([first], set(), "", several=True)


def test_a_quotation_cannot_end_its_fence() -> None:
    lines = change("+```", "+rm -rf /")
    text = message_of([comment(*lines)], set(), "", several=False)
    assert "````diff\n+```\n+rm -rf /\n````" in text


def test_a_long_quotation_is_shortened() -> None:
    lines = change(*[f"+{n}" for n in range(100)])
    text = message_of([comment(*lines)], set(), "", several=False)
    assert len(text.splitlines()) < MOST_QUOTED + 12
    assert "... 88 lines ..." in text


def test_comments_survive_on_disk(tmp_path: Path) -> None:
    kept = CommentsOnDisk(ClientDisk(tmp_path), REPLICA)
    said = [comment(BEFORE[2]), comment(BEFORE[1], text="half a", key="l")]
    said[1].unfinished = True
    kept.write(said)
    assert CommentsOnDisk(ClientDisk(tmp_path), REPLICA).read() == said
    kept.write([])
    assert kept.read() == []
    assert not list((tmp_path / "comments").iterdir())


@pytest.mark.parametrize("text", ["{", "[{}]", "\x00"])
def test_a_file_that_cannot_be_read_is_set_aside(tmp_path: Path, text: str) -> None:
    kept = CommentsOnDisk(ClientDisk(tmp_path), REPLICA)
    (tmp_path / "comments").mkdir()
    (tmp_path / "comments" / f"{REPLICA}.json").write_text(text)
    assert kept.read() == []
    kept.write([comment(BEFORE[2])])
    assert len(kept.read()) == 1
    assert (tmp_path / "comments" / f"{REPLICA}.unreadable").read_text() == text
