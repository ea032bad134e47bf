"""Reading changes and commenting on them, with a store that stands still."""

import json
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.store.changes_diff import DiffSide
from quarterdeck.store.review import Review
from quarterdeck.store.status import ConnectionPhase
from quarterdeck.tui.changes.document import ItemAddress
from quarterdeck.tui.changes.model import ItemKind, counts
from tests.tui_changes.material import EVERYTHING, LOGIN, Reading, changing, take
from tests.tui_shell.frozen import FrozenCockpit

WIDE = (140, 40)
DOCS = "diff --git a/guide.md b/guide.md\n--- a/guide.md\n+++ b/guide.md\n@@ -1 +1 @@\n-a\n+b\n"


async def to(reading: Reading, line: str) -> None:
    """Puts the cursor on a line."""
    view = reading.pane.view
    document = view._document
    view._go(
        next(
            at
            for at in document.walk(ItemAddress(0, 0), 1)
            if document.item(at).line >= 0
            and document.item(at).kind in {ItemKind.LINE, ItemKind.PAIR}
            and document.placed[at.section].section.lines[document.item(at).line].text == line
        )
    )
    await reading.pilot.pause()
    assert reading.at == line


async def comment_on(reading: Reading, line: str, text: str) -> None:
    await to(reading, line)
    await reading.press("c", *text, "enter")


def kept(review: Review, drafts: Path) -> list[dict[str, Any]]:
    path = drafts / "local" / "comments" / f"{review.replica_id}.json"
    return json.loads(path.read_text()) if path.exists() else []


async def test_files_hunks_and_lines_are_a_key_away(frozen: FrozenCockpit) -> None:
    changing(frozen, EVERYTHING, DOCS)
    async with frozen.run_test(size=WIDE) as pilot:
        reading = Reading(frozen, pilot)
        await reading.open()
        await reading.see(f"shop main · 6 files {counts(6, 3)}", "old.txt → new.txt", "Binary")
        await reading.press("right_square_bracket", "down", "down", "down", "down")
        assert reading.at == "def login(name, limit=3):"
        await reading.press("right_square_bracket", "down", "down")
        assert reading.at == "    return None"
        await reading.press("right_curly_bracket", "right_curly_bracket")
        section = reading.pane.view.section
        assert section is not None and section.key == ("shop", "tool.sh")
        await reading.press("end")
        assert reading.at == "b"
        await reading.press("left_curly_bracket")
        section = reading.pane.view.section
        assert section is not None and section.key == ("docs", "guide.md")


async def test_files_fold_and_open(frozen: FrozenCockpit) -> None:
    changing(frozen, EVERYTHING)
    async with frozen.run_test(size=WIDE) as pilot:
        reading = Reading(frozen, pilot)
        await reading.open()
        await reading.press("Z")
        assert "def login" not in reading.text
        assert reading.text.count("▸") == 6
        await reading.press("down", "enter")
        await reading.see("def login(name, limit=30)")
        assert reading.text.count("▸") == 5


@pytest.mark.long
async def test_both_sides_stand_beside_each_other_where_there_is_room(
    frozen: FrozenCockpit,
) -> None:
    changing(frozen, LOGIN)
    async with frozen.run_test(size=(160, 40)) as pilot:
        reading = Reading(frozen, pilot)
        await reading.open()
        await to(reading, "    return None")
        await reading.press("u")
        await reading.see("side by side")
        row = next(row for row in reading.text.splitlines() if "limit=3)" in row)
        assert "def login(name, limit=30):" in row
        assert reading.at == "    return None"
        await reading.press("u")
        assert "def login(name, limit=30):" not in next(
            row for row in reading.text.splitlines() if "limit=3)" in row
        )


@pytest.mark.long
async def test_a_narrow_window_says_why_it_shows_one_side(frozen: FrozenCockpit) -> None:
    changing(frozen, LOGIN)
    async with frozen.run_test(size=(80, 24)) as pilot:
        reading = Reading(frozen, pilot)
        await reading.open()
        await reading.press("u")
        await reading.see("too narrow for split")
        assert not reading.pane.view.split
        await pilot.resize_terminal(160, 40)
        await reading.see("side by side")


@pytest.mark.long
async def test_a_comment_is_kept_before_it_is_finished(
    frozen: FrozenCockpit, tmp_path: Path
) -> None:
    review = changing(frozen, LOGIN)
    async with frozen.run_test(size=WIDE) as pilot:
        reading = Reading(frozen, pilot)
        await reading.open()
        await to(reading, "def login(name, limit=30):")
        await reading.press("c", *"Why")
        await reading.until(lambda: kept(review, tmp_path / "client"))
        [comment] = kept(review, tmp_path / "client")
        assert comment["text"] == "Why" and comment["unfinished"]
        assert comment["path"] == "shop/login.py" and comment["start"] == 4
        await reading.press("escape")
        await reading.see("Unfinished comment, line 4", "1 unfinished")
        # Typed on, with a second line, and kept.
        await reading.press("down", "enter", "ctrl+j", *"30?", "enter")
        await reading.see("Comment, line 4", "Why", "30?", "1 comment, S sends")
        assert review.comments[0].text == "Why\n30?"
        await reading.press("d")
        assert review.comments == [] == kept(review, tmp_path / "client")


@pytest.mark.long
async def test_comments_come_back_in_another_cockpit(tmp_path: Path) -> None:
    first = FrozenCockpit(tmp_path / "client")
    changing(first, LOGIN)
    async with first.run_test(size=WIDE) as pilot:
        reading = Reading(first, pilot)
        await reading.open()
        await comment_on(reading, "    return True", "Sure?")
        await to(reading, "    return None")
        await reading.press("c", *"half a")
    second = FrozenCockpit(tmp_path / "client")
    changing(second, LOGIN)
    async with second.run_test(size=WIDE) as pilot:
        reading = Reading(second, pilot)
        await reading.open()
        await reading.see("Comment, line 42", "Sure?", "Unfinished comment, line 41", "half a")


@pytest.mark.long
async def test_a_file_is_commented_on_as_a_whole(frozen: FrozenCockpit) -> None:
    review = changing(frozen, EVERYTHING)
    async with frozen.run_test(size=WIDE) as pilot:
        reading = Reading(frozen, pilot)
        await reading.open()
        view = reading.pane.view
        head = next(
            at
            for at in view._document.walk(ItemAddress(0, 0), 1)
            if view._document.item(at).kind == ItemKind.FILE
        )
        view._go(head)
        await reading.press("c")
        await reading.see("Comment on shop/login.py as a whole")
        await reading.press(*"Split it", "enter")
        await reading.see("Comment, as a whole", "Split it", "1 comment, S sends")
        assert view.item is not None and view.item.kind == ItemKind.FILE
        await reading.press("c", *"!", "enter")
        [comment] = review.comments
        assert (comment.path, comment.quoted, comment.text) == ("shop/login.py", [], "Split it!")
        take(review, LOGIN.replace("shop/login.py", "other.py"))
        reading.pane._show_changes()
        await reading.see("Comment, outdated: shop/login.py as a whole")


@pytest.mark.long
@pytest.mark.parametrize("name", ["[slug].tsx", "[x/].md", "[@click=app.quit]y.md"])
async def test_the_title_of_a_comment_has_the_name_of_the_file_as_it_is(
    frozen: FrozenCockpit, name: str
) -> None:
    changing(frozen, DOCS.replace("guide.md", f"a[/b]/{name}"))
    async with frozen.run_test(size=WIDE) as pilot:
        reading = Reading(frozen, pilot)
        await reading.open()
        await to(reading, "b")
        await reading.press("c")
        await reading.see(f"Comment on a[/b]/{name}")


async def test_several_lines_are_one_comment(frozen: FrozenCockpit) -> None:
    review = changing(frozen, LOGIN)
    async with frozen.run_test(size=WIDE) as pilot:
        reading = Reading(frozen, pilot)
        await reading.open()
        await to(reading, "def login(name, limit=3):")
        await reading.press("v", "down", "down")
        await reading.see("selecting lines")
        await reading.press("c", *"No", "enter")
        [comment] = review.comments
        assert comment.quoted == [
            "-def login(name, limit=3):",
            "+def login(name, limit=30):",
            "+    # Minutes, as everywhere.",
        ]
        assert (comment.side, comment.start, comment.end) == (DiffSide.NEW, 4, 5)


async def test_lines_are_chosen_by_dragging_the_mouse_over_them(frozen: FrozenCockpit) -> None:
    review = changing(frozen, LOGIN)
    async with frozen.run_test(size=WIDE) as pilot:
        reading = Reading(frozen, pilot)
        await reading.open()
        view = reading.pane.view
        rows = [view._document_row(view._cursor)]
        for line in ("def login(name, limit=30):", "def login(name, limit=3):"):
            await to(reading, line)
            rows.append(view._document_row(view._cursor) - int(view.scroll_offset.y))
        await pilot.mouse_down(view, offset=(20, rows[2]))
        await pilot.hover(view, offset=(24, rows[1]))
        await pilot.mouse_up(view, offset=(24, rows[1]))
        await reading.see("selecting lines")
        await reading.press("c", *"No", "enter")
        assert [comment.quoted for comment in review.comments] == [
            ["-def login(name, limit=3):", "+def login(name, limit=30):"]
        ]
        await pilot.click(view, offset=(20, rows[0]))
        assert not view.marking


@pytest.mark.long
async def test_a_comment_follows_its_line_and_is_outdated_without_it(
    frozen: FrozenCockpit,
) -> None:
    review = changing(frozen, LOGIN)
    async with frozen.run_test(size=WIDE) as pilot:
        reading = Reading(frozen, pilot)
        await reading.open()
        await comment_on(reading, "    # Minutes, as everywhere.", "Seconds!")
        moved = LOGIN.replace("@@ -1,7 +1,8 @@", "@@ -1,7 +3,8 @@")
        take(review, moved)
        reading.pane._show_changes()
        await reading.see("Comment, line 7")
        take(review, LOGIN.replace("Minutes", "Hours"))
        reading.pane._show_changes()
        await reading.see("outdated", "line 7 was + # Minutes", "Seconds!")
        take(review, moved)
        reading.pane._show_changes()
        await reading.see("Comment, line 7")
        take(review, DOCS)
        reading.pane._show_changes()
        await reading.see("outdated: shop/login.py line 7", "Seconds!")


def row_of(reading: Reading, text: str) -> int:
    return next(n for n, row in enumerate(reading.text.splitlines()) if text in row)


async def test_the_reader_stays_where_they_read(frozen: FrozenCockpit) -> None:
    review = changing(frozen, LOGIN)
    async with frozen.run_test(size=(100, 14)) as pilot:
        reading = Reading(frozen, pilot)
        await reading.open()
        await to(reading, "    return None")
        at = row_of(reading, "return None")
        many = "".join(f"+new {n}\n" for n in range(50))
        first = f"diff --git a/a b/a\nnew file mode 100644\n@@ -0,0 +1,50 @@\n{many}"
        take(review, first + LOGIN)
        reading.pane._show_changes()
        await pilot.pause()
        assert reading.at == "    return None"
        assert row_of(reading, "return None") == at


@pytest.mark.long
async def test_searching_opens_what_is_folded(frozen: FrozenCockpit) -> None:
    changing(frozen, EVERYTHING)
    async with frozen.run_test(size=WIDE) as pilot:
        reading = Reading(frozen, pilot)
        await reading.open()
        await reading.press("Z", "home", "slash", *"return", "enter")
        await reading.see("/return 1/3")
        assert reading.at == "    return time.time() + limit"
        await reading.press("n", "n")
        assert reading.at == "    return True"
        await reading.press("n", "N", "N")
        assert reading.at == "    return None"
        await reading.press("slash", *"nowhere", "enter")
        await reading.see("No match for nowhere", "not found")
        await reading.press("escape")
        assert "nowhere" not in reading.text


@pytest.mark.long
async def test_letters_are_text_in_a_field(frozen: FrozenCockpit) -> None:
    review = changing(frozen, LOGIN)
    async with frozen.run_test(size=WIDE) as pilot:
        reading = Reading(frozen, pilot)
        await reading.open()
        typed = "1wdqnSuz?/ v"
        await to(reading, "    return True")
        await reading.press("c", *("space" if c == " " else c for c in typed), "left", "x", "enter")
        assert review.comments[0].text == "1wdqnSuz?/ xv"


@pytest.mark.long
async def test_lines_and_files_are_copied(frozen: FrozenCockpit) -> None:
    changing(frozen, LOGIN)
    async with frozen.run_test(size=WIDE) as pilot:
        reading = Reading(frozen, pilot)
        await reading.open()
        await to(reading, "    return None")
        await reading.press("v", "down", "y")
        assert frozen.clipboard == "    return None\n    return True"
        await reading.press("Y")
        assert frozen.clipboard == LOGIN


@pytest.mark.long
@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("archived", "Archived: w restores the files."),
        ("preparing", "Preparing."),
    ],
)
async def test_a_replica_without_files_in_place_is_not_asked(
    frozen: FrozenCockpit, status: str, words: str
) -> None:
    left = {"files": 1, "added": 1, "removed": 0}
    numbers = {
        "repository": "shop",
        "branch": "qd/old",
        "ahead": 2,
        "uncommitted": left,
        "git_diff": {"added": 12, "removed": 3},
    }
    state = frozen.add("old-idea", status, repository_statuses=[numbers])
    async with frozen.run_test(size=WIDE) as pilot:
        reading = Reading(frozen, pilot)
        await reading.open()
        await reading.see(words, f"shop qd/old: {counts(12, 3)}, 2 commits, 1 file uncommitted")
        for key in ("r", "C", "U"):
            await reading.press(key)
            await reading.see("The files are not loaded. w wakes")
        take(frozen.app_state.reviews.of(state.id), LOGIN)
        reading.pane._show_changes()
        await reading.press("down")
        await reading.see(words, "As of 12:00.", "def login")


async def test_typing_replaces_the_proposed_message_of_a_commit(frozen: FrozenCockpit) -> None:
    changing(frozen, LOGIN)
    async with frozen.run_test(size=WIDE) as pilot:
        reading = Reading(frozen, pilot)
        await reading.open()
        await reading.press("C")
        assert reading.pane.field.text
        await reading.press(*"One")
        assert reading.pane.field.text == "One"


@pytest.mark.long
async def test_nothing_is_sent_without_comments(frozen: FrozenCockpit) -> None:
    changing(frozen, LOGIN)
    async with frozen.run_test(size=WIDE) as pilot:
        reading = Reading(frozen, pilot)
        await reading.open()
        await reading.press("S")
        await reading.see("No comments to send")


@pytest.mark.long
async def test_without_a_line_comments_wait_in_the_outbox(frozen: FrozenCockpit) -> None:
    review = changing(frozen, LOGIN)
    frozen.app_state.connection.phase = ConnectionPhase.RECONNECTING
    async with frozen.run_test(size=WIDE) as pilot:
        reading = Reading(frozen, pilot)
        await reading.open()
        await comment_on(reading, "    return True", "Sure?")
        await reading.press("S", *"Hello", "enter")
        await reading.see("The comment is in the chat")
        state = review.state
        assert state is not None and state.first_chat is not None
        [message] = frozen.app_state.outbox.of_chat(state.first_chat.id)
        assert message.state == "unsent"
        assert message.text == (
            "Hello\n\nA comment on your changes:\n\n"
            "1. `shop/login.py`, line 42\n\n```diff\n+    return True\n```\n\nSure?"
        )
        assert review.comments == []


@pytest.mark.long
async def test_a_hundred_thousand_lines_open_at_once(frozen: FrozenCockpit) -> None:
    body = "".join(f"+line {n}\n" for n in range(100_000))
    changing(
        frozen,
        f"diff --git a/big b/big\nnew file mode 100644\n@@ -0,0 +1,100000 @@\n{body}" + LOGIN,
    )
    async with frozen.run_test(size=WIDE) as pilot:
        reading = Reading(frozen, pilot)
        await reading.open()
        await reading.see("▸ big +100000", "def login")
        await reading.press("home", "down", "enter")
        await reading.see("▾ big +100000", "line 12")
        await reading.press("slash", *"line 99999", "enter")
        assert reading.at == "line 99999"


@pytest.mark.long
async def test_enter_on_the_head_of_a_change_folds_it_and_opens_it(frozen: FrozenCockpit) -> None:
    review = changing(frozen, LOGIN)
    async with frozen.run_test(size=WIDE) as pilot:
        reading = Reading(frozen, pilot)
        await reading.open()
        await reading.press("right_square_bracket", "enter")
        await reading.see("▸ @@ 1 import time · 9 lines", "return True")
        assert "limit=30" not in reading.text
        # The same changes read once more: it stays folded, and the cursor on it.
        take(review, LOGIN)
        reading.pane._show_changes()
        await reading.press("down")
        assert reading.pane.view.item is not None
        assert reading.pane.view.item.text == "@@ 41 def logout(name):"
        # What is searched for is shown.
        await reading.press("slash", *"limit=30", "enter")
        await reading.see("def login(name, limit=30):", "▾ shop/login.py")
        assert reading.at == "def login(name, limit=30):"
        await reading.press("left_square_bracket", "enter", "enter")
        await reading.see("def login(name, limit=30):")
        assert reading.pane.field.display is False


async def test_the_cursor_stays_when_the_changes_are_read_again(frozen: FrozenCockpit) -> None:
    review = changing(frozen, EVERYTHING, DOCS)
    async with frozen.run_test(size=(100, 14)) as pilot:
        reading = Reading(frozen, pilot)
        await reading.open()
        await to(reading, "    return True")
        top = reading.pane.view.scroll_offset.y
        for texts in ((EVERYTHING, DOCS), (), ("",), (EVERYTHING, DOCS)):
            # Also when the repository could not be asked meanwhile.
            take(review, *texts)
            reading.pane._show_changes()
            await pilot.pause()
        assert reading.at == "    return True"
        assert reading.pane.view.scroll_offset.y == top
        # A person who moved meanwhile is somewhere else on purpose.
        take(review, "", DOCS)
        reading.pane._show_changes()
        await reading.press("end")
        assert reading.at == "b"
        take(review, EVERYTHING, DOCS)
        reading.pane._show_changes()
        await pilot.pause()
        assert reading.at == "b"
