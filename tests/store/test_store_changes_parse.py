"""Differences as git prints them, read back."""

import difflib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.store.changes_diff import ChangeKind, FileChange, parse_changes, unquoted
from tests.support.git import git

LINE = st.text(
    st.characters(codec="utf-8", exclude_characters="\n"), max_size=20
) | st.sampled_from(
    ["--- a/x", "+++ b/x", "diff --git a/x b/x", "@@ -1 +1 @@", "\\ No newline", "", "same", "same"]
)
LINES = st.lists(LINE, max_size=30)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "kept.txt").write_text("".join(f"line {n}\n" for n in range(40)))
    (tmp_path / "moved.txt").write_text("".join(f"row {n}\n" for n in range(40)))
    (tmp_path / "gone.txt").write_text("farewell\n")
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "picture").write_bytes(bytes(range(256)))
    (tmp_path / "grüße b/é.txt").parent.mkdir()
    (tmp_path / "grüße b/é.txt").write_text("hallo\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "Start")
    return tmp_path


def difference(checkout: Path, *options: str) -> dict[str, FileChange]:
    git(checkout, "add", "-A")
    return {
        one.path: one for one in parse_changes(git(checkout, *options, "diff", "-M", "HEAD") + "\n")
    }


def test_every_kind_of_change_is_read(checkout: Path) -> None:
    (checkout / "kept.txt").write_text((checkout / "kept.txt").read_text().replace("line 20", "x"))
    (checkout / "moved.txt").rename(checkout / "there.txt")
    (checkout / "gone.txt").unlink()
    (checkout / "tool").chmod(0o755)
    (checkout / "picture").write_bytes(bytes(range(255, -1, -1)))
    (checkout / "grüße b/é.txt").write_text("hallo")
    (checkout / "empty").touch()
    found = difference(checkout)
    kept = found["kept.txt"]
    assert (kept.kind, kept.added, kept.removed) == (ChangeKind.CHANGED, 1, 1)
    assert [(n.sign, n.number, n.text) for n in kept.numbered() if n.sign in "+-"] == [
        ("-", 21, "line 20"),
        ("+", 21, "x"),
    ]
    moved = found["there.txt"]
    assert (moved.kind, moved.old_path, moved.hunks) == (ChangeKind.RENAMED, "moved.txt", [])
    assert (found["gone.txt"].kind, found["gone.txt"].removed) == (ChangeKind.DELETED, 1)
    assert (found["tool"].old_mode, found["tool"].new_mode) == ("100644", "100755")
    assert found["tool"].mode_changed
    assert found["picture"].binary
    assert (found["empty"].kind, found["empty"].hunks) == (ChangeKind.ADDED, [])
    newline = found["grüße b/é.txt"]
    assert [n.sign for n in newline.numbered()] == ["-", "+", "\\"]


@pytest.mark.parametrize("setting", ["diff.noprefix=true", "diff.mnemonicPrefix=true"])
def test_prefixes_are_whatever_the_repository_wants(checkout: Path, setting: str) -> None:
    (checkout / "gone.txt").unlink()
    (checkout / "grüße b/é.txt").write_text("tschüß\n")
    assert set(difference(checkout, "-c", setting)) == {"gone.txt", "grüße b/é.txt"}


@given(LINES, LINES)
def test_the_lines_of_both_sides_come_back(old: list[str], new: list[str]) -> None:
    body = list(difflib.unified_diff(old, new, "a/x", "b/x", lineterm="", n=1))
    [found] = parse_changes("\n".join(["diff --git a/x b/x", *body, ""]))
    side = {
        sign: {n.number: n.text for n in found.numbered() if n.sign == sign} for sign in ("+", "-")
    }
    # Put together again: the old lines without those that went, with those that came.
    rest = [text for number, text in enumerate(old, 1) if number not in side["-"]]
    for number in sorted(side["+"]):
        rest.insert(number - 1, side["+"][number])
    assert rest == new
    assert all(old[number - 1] == text for number, text in side["-"].items())
    assert (found.added, found.removed) == (len(side["+"]), len(side["-"]))
    assert not any(hunk.cut for hunk in found.hunks)


@given(st.text() | st.lists(LINE).map("\n".join))
def test_nothing_raises(text: str) -> None:
    parse_changes(text)
    parse_changes("diff --git a/x b/x\n@@ -1,9 +1,9 @@\n" + text)
    unquoted(f'"{text}"')


def test_what_is_cut_is_known() -> None:
    [found] = parse_changes("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,9 @@\n a\n+b\n")
    assert found.hunks[0].cut
    assert found.added == 1


def test_a_hundred_thousand_lines_are_one_list() -> None:
    body = "".join(f"+{n}\n" for n in range(100_000))
    [found] = parse_changes(
        "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n"
        f"@@ -0,0 +1,100000 @@\n{body}"
    )
    assert found.added == found.length == 100_000
