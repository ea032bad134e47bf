"""The view on a screen: what is seen, where the reader is, what it tells."""

from datetime import timedelta

import pytest

from quarterdeck.transcript.blocks import MessageBlock, ToolBlock, UserBlock
from quarterdeck.transcript.fold import OWN_TURN, Transcript
from quarterdeck.tui.transcript_view import TranscriptView
from quarterdeck.tui.transcript_view.layout import clock
from tests.support.shown import shown_strips
from tests.tui_transcript.view_app import (
    START,
    Host,
    ask,
    event,
    say,
    settle,
    talk,
    text_rows,
    tool,
    user,
)


async def test_the_end_is_followed() -> None:
    app = Host(*talk(50))
    async with app.run_test(size=(60, 20)) as pilot:
        await settle(pilot)
        assert "Run 49" in app.seen()[-1]
        app.add(say("one more line"))
        await settle(pilot)
        assert app.seen()[-1] == "one more line" and app.view.following
        assert app.view.new_below == 0 and app.told == []


async def test_the_reader_is_never_moved() -> None:
    app = Host(*talk(50))
    async with app.run_test(size=(60, 20)) as pilot:
        await settle(pilot)
        await pilot.press("pageup", "pageup")
        await settle(pilot)
        before = text_rows(app.seen())
        assert not app.view.following
        app.add(*talk(3, 50))
        await settle(pilot)
        after = app.seen()
        assert text_rows(after)[:-1] == before[: len(text_rows(after)) - 1]
        assert "9 new below" in after[-1]
        assert app.view.new_below == 9 and app.told[-1] == 9
        await pilot.press("end")
        await settle(pilot)
        assert app.view.new_below == 0 and app.told[-1] == 0 and app.view.following


@pytest.mark.parametrize("speaker", ["", "Codex"])
async def test_older_pages_are_asked_for_once_and_keep_the_place(speaker: str) -> None:
    events = talk(60)
    app = Host(*events[100:])
    app.view.show_speaker(speaker)
    async with app.run_test(size=(60, 20)) as pilot:
        app.view.has_older = True
        await settle(pilot)
        assert app.told == []
        await pilot.press("home")
        await settle(pilot)
        await pilot.press("home")
        await settle(pilot)
        assert app.told == ["older"]
        before = app.seen()
        app.view.refresh_change(app.view.transcript.prepend(events[:100]))
        await settle(pilot)
        # The first block got a blank and a heading before it, and its own text stays where it was.
        assert app.seen() == before
        await pilot.press("home")
        await settle(pilot)
        assert "prompt 0" in app.seen()[1] and app.told == ["older", "older"]


async def test_the_agents_name_stands_above_what_it_says_after_another() -> None:
    own = event("user-message", 60, messageId="m1", text="and now", steered=True)
    app = Host(
        user(0),
        event("agent_thought_chunk", 1, content={"type": "text", "text": "hm"}),
        event("agent_message_chunk", 2, content={"type": "text", "text": "first"}),
        own,
        event("agent_message_chunk", 120, content={"type": "text", "text": "second"}),
        event("turn-result", 130, messageId="m0", stopReason="end_turn"),
        event("turn-started", 180, messageId="m2", origin="agent"),
    )
    async with app.run_test(size=(60, 24)) as pilot:
        app.view.show_speaker("Codex")
        await settle(pilot)
        clocks = [clock(START + timedelta(minutes=minute)) for minute in range(3)]
        rows = [row for row in app.seen() if row and not row.startswith("\u2500")]
        assert rows == [
            *(f"You {clocks[0]}", "prompt 0"),
            *(f"Codex {clocks[0]}", "\u25b8 hm", "first"),
            *(f"You {clocks[1]} steered", "and now"),
            *(f"Codex {clocks[2]}", "second"),
            f"\u00b7 {OWN_TURN}",
        ]
        app.add(say("more", "other"))
        await settle(pilot)
        shown = [row for row in app.seen() if row][-3:]
        assert shown == [f"\u00b7 {OWN_TURN}", f"Codex {clocks[0]}", "more"]


async def test_a_message_cut_by_the_page_keeps_the_place() -> None:
    whole = [user(0), *(say(f"paragraph {n}\n\n") for n in range(100))]
    app = Host(*whole[50:])
    async with app.run_test(size=(60, 20)) as pilot:
        await settle(pilot)
        await pilot.press("home")
        await settle(pilot)
        before = app.seen()
        assert before[0] == "paragraph 49"
        app.view.refresh_change(app.view.transcript.prepend(whole[:50]))
        await settle(pilot)
        assert app.seen() == before


async def test_a_resize_keeps_the_place() -> None:
    app = Host(*talk(80))
    async with app.run_test(size=(90, 20)) as pilot:
        await settle(pilot)
        await pilot.press("pageup", "pageup", "pageup", "[")
        await settle(pilot)
        top = app.seen()[:3]
        await pilot.resize_terminal(41, 30)
        await settle(pilot)
        assert app.seen()[:3] == top
        await pilot.press("end")
        await pilot.resize_terminal(70, 25)
        await settle(pilot)
        assert app.view.following and "Run 79" in app.seen()[-1]
        await pilot.resize_terminal(70, 45)
        await settle(pilot)
        assert app.view.following and "Run 79" in app.seen()[-1]


async def test_tool_calls_open_and_fold() -> None:
    text = [{"type": "content", "content": {"type": "text", "text": "\n".join("abc")}}]
    diff = [{"type": "diff", "path": "a.py", "oldText": "old\n", "newText": "new\n"}]
    app = Host(
        user(0),
        tool("a", title="Run it", status="completed", content=text, rawOutput={"exitCode": 2}),
        tool("b", title="Edit it", status="completed", content=diff),
    )
    async with app.run_test(size=(60, 20)) as pilot:
        await settle(pilot)
        rows = app.seen()
        head = next(row for row in rows if "Run it" in row)
        assert head.startswith("\u25b8 \u2713 Run it") and "exit 2" in head
        await pilot.press("up", "up", "enter")
        await settle(pilot)
        assert isinstance(app.view.cursor_block, ToolBlock)
        assert [row for row in app.seen() if row in "abc" and row] == ["a", "b", "c"]
        await pilot.press("enter")
        await settle(pilot)
        assert app.seen() == rows
        y = next(n for n, row in enumerate(rows) if "Edit it" in row)
        await pilot.click(TranscriptView, offset=(8, y))
        await settle(pilot)
        assert {"-old", "+new"} <= set(app.seen())


async def test_a_question_says_where_it_is_answered_and_then_how_it_was() -> None:
    app = Host(user(0), ask(acceptsText=True))
    async with app.run_test(size=(60, 20)) as pilot:
        await settle(pilot)
        assert "Your answer is needed below." in "\n".join(app.seen())
        outcome = {"outcome": "answered", "text": "neither\nof \x1b[31mthem"}
        app.add(event("acp-permission_outcome", requestId="q", outcome=outcome))
        await settle(pilot)
        [told] = [row for row in app.seen() if "Write: " in row]
        assert told.endswith("Write: neither of them"), told
        assert "below" not in "\n".join(app.seen())


async def test_from_prompt_to_prompt() -> None:
    app = Host(*talk(40))
    async with app.run_test(size=(60, 20)) as pilot:
        await settle(pilot)
        for _ in range(10):
            await pilot.press("[")
        await settle(pilot)
        block = app.view.cursor_block
        assert isinstance(block, UserBlock) and block.text == "prompt 29"
        await pilot.press("]")
        await settle(pilot)
        assert app.view.cursor_block is not None
        assert app.view.text_of(app.view.cursor_block) == "> prompt 30"
        assert "prompt 30" in app.seen()[2]


@pytest.mark.long
async def test_every_block_is_reached_line_by_line() -> None:
    app = Host(user(0), say("long " * 300), user(1), say("end"))
    async with app.run_test(size=(40, 12)) as pilot:
        await settle(pilot)
        await pilot.press("home")
        shown = set(app.seen())
        for _ in range(80):
            await pilot.press("j")
            shown.update(app.seen())
            if app.view.following and isinstance(app.view.cursor_block, MessageBlock):
                break
        assert {"prompt 0", "prompt 1", "end"} <= shown
        for _ in range(60):
            await pilot.press("k")
            if app.view.cursor_block is app.view.transcript.blocks[0]:
                break
        await settle(pilot)
        assert "prompt 0" in app.seen()[1]


async def test_the_running_turn_is_told_at_the_end() -> None:
    app = Host(user(0), say("hm"))
    async with app.run_test(size=(60, 20)) as pilot:
        app.view.working_since = START
        await settle(pilot)
        assert any("working since" in row for row in app.seen())
        app.add(say("!", "other"))
        await settle(pilot)
        rows = [row for row in app.seen() if row]
        assert rows[-2:] == ["!", rows[-1]] and "working since" in rows[-1]
        assert sum("working" in row for row in rows) == 1
        app.view.working_since = None
        await settle(pilot)
        assert not any("working" in row for row in app.seen())


async def test_another_transcript() -> None:
    app = Host(*talk(30))
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.press("home")
        app.view.set_transcript(Transcript([user(7)]))
        await settle(pilot)
        assert [row for row in app.seen() if row][-1] == "prompt 7"
        app.view.set_transcript(Transcript())
        await settle(pilot)
        assert not any(app.seen())
        for key in ("up", "down", "pageup", "end", "home", "[", "]", "enter", "1"):
            await pilot.press(key)
        app.add(user(8))
        await settle(pilot)
        assert [row for row in app.seen() if row][-1] == "prompt 8"


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (8, 2), (300, 100)])
async def test_any_size(size: tuple[int, int]) -> None:
    app = Host(*talk(5), ask(), say("| a | b |\n|--|--|\n| \u6f22\u5b57 | x |\n\n> - 1. `c`\n"))
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        for key in ("home", "down", "enter", "pagedown", "end"):
            await pilot.press(key)
        await settle(pilot)


@pytest.mark.parametrize("theme", ["textual-light", "ansi-dark", "nord"])
async def test_themes_draw_anew(theme: str) -> None:
    app = Host(*talk(3))
    async with app.run_test(size=(60, 20)) as pilot:
        await settle(pilot)
        before = [strip.text for strip in shown_strips(app)]
        old = [list(strip) for strip in app.view.render_lines(app.view.size.region)]
        app.theme = theme
        await settle(pilot)
        new = [list(strip) for strip in app.view.render_lines(app.view.size.region)]
        assert [strip.text for strip in shown_strips(app)] == before
        assert old != new


async def test_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = Host(*talk(3), tool("f", title="x", status="failed"))
    async with app.run_test(size=(60, 20)) as pilot:
        await settle(pilot)
        for strip in app.view.render_lines(app.view.size.region):
            for _, style, _ in strip:
                color = style.color.triplet if style and style.color else None
                assert color is None or len({color.red, color.green, color.blue}) == 1


async def test_of_ten_thousand_events_only_what_is_seen_is_drawn() -> None:
    app = Host(*talk(3_400))
    async with app.run_test(size=(120, 40)) as pilot:
        app.view.set_transcript(Transcript(talk(3_400)))
        await settle(pilot)
        assert "Run 3399" in app.seen()[-1]
        assert len(app.view._reader.drawings._kept) < 100
