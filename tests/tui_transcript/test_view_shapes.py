"""Running calls show their output, and the reader is not moved by it."""

from typing import Any

from quarterdeck.transcript.blocks import ToolBlock
from quarterdeck.wire.history import AgentEvent
from tests.tui_transcript.view_app import Host, event, say, settle, talk, tool, user

LATER = [say(f"word {n}", f"later {n}") for n in range(40)]


def told(tool_id: str, lines: int, status: str = "in_progress", **more: Any) -> AgentEvent:
    text = "\n".join(f"{tool_id} out {n}" for n in range(lines))
    content = [{"type": "content", "content": {"type": "text", "text": f"```\n{text}\n```"}}]
    return event("tool_call_update", toolCallId=tool_id, status=status, content=content, **more)


def output(app: Host) -> list[str]:
    return [row for row in app.seen() if " out " in row]


async def test_a_running_call_shows_the_end_of_its_output_and_folds_when_it_completes() -> None:
    app = Host(*talk(20), tool("t", title="Build"))
    async with app.run_test(size=(60, 20)) as pilot:
        await settle(pilot)
        assert app.seen()[-1].endswith("Build")
        app.add(told("t", 3))
        await settle(pilot)
        assert app.seen()[-3:] == ["t out 0", "t out 1", "t out 2"]
        app.add(told("t", 30))
        await settle(pilot)
        assert output(app) == [f"t out {n}" for n in range(22, 30)]
        assert app.seen()[-1] == "t out 29" and app.view.following
        app.add(told("t", 31, "completed"))
        await settle(pilot)
        assert output(app) == [] and "Build" in app.seen()[-1] and app.view.following


async def test_a_failed_call_shows_why() -> None:
    app = Host(user(0), tool("t", title="Build"), told("t", 30, "failed"), say("next"))
    async with app.run_test(size=(60, 30)) as pilot:
        await settle(pilot)
        assert output(app) == [f"t out {n}" for n in range(20, 30)]


async def test_what_the_person_opened_or_folded_stays_so() -> None:
    app = Host(user(0), tool("t", title="Build"), told("t", 20))
    async with app.run_test(size=(60, 40)) as pilot:
        await settle(pilot)
        await pilot.press("up", "enter")
        await settle(pilot)
        assert isinstance(app.view.cursor_block, ToolBlock) and len(output(app)) == 20
        app.add(told("t", 21, "completed"))
        await settle(pilot)
        assert len(output(app)) == 21
        await pilot.press("enter")
        app.add(told("t", 22, "failed"))
        await settle(pilot)
        assert output(app) == []


async def test_a_call_that_ends_under_the_eyes_of_a_reader_keeps_its_rows() -> None:
    app = Host(*talk(30), tool("t", title="Build"), told("t", 20), *LATER)
    async with app.run_test(size=(60, 20)) as pilot:
        await settle(pilot)
        while not output(app):
            await pilot.press("pageup")
            await settle(pilot)
        await pilot.press("k", "k")
        await settle(pilot)
        before = [row.replace("\u25cf", "\u2713") for row in app.seen()[:-1]]
        assert len(output(app)) == 8 and not app.view.following
        app.add(told("t", 20, "completed"))
        await settle(pilot)
        assert app.seen()[:-1] == before
        await pilot.press("end")
        await settle(pilot)
        while not any("Build" in row for row in app.seen()):
            await pilot.press("pageup")
            await settle(pilot)
        assert output(app) == []


async def test_a_call_that_reaches_out_at_the_top_moves_nothing() -> None:
    app = Host(*talk(30), tool("t", title="Build"), told("t", 5), *LATER)
    async with app.run_test(size=(60, 20)) as pilot:
        await settle(pilot)
        viewport = app.view._reader.viewport
        index = next(n for n, b in enumerate(app.view.transcript.blocks) if b.id == block_id(app))
        viewport.show(index, 4)
        app.view.refresh()
        await settle(pilot)
        assert output(app) == ["t out 3", "t out 4"]
        before = app.seen()[2:-1]
        app.add(told("t", 7))
        await settle(pilot)
        assert app.seen()[2:-1] == before and output(app) == ["t out 5", "t out 6"]
        app.add(told("t", 1))
        await settle(pilot)
        assert app.seen()[2:-1] == before and output(app) == ["t out 0"]


async def test_the_end_of_a_long_line_and_the_start_of_a_change_are_shown() -> None:
    diff = [{"type": "diff", "path": "a.py", "oldText": "old\n", "newText": "new\n" * 50}]
    endless = {"stdout": "x" * 100_000 + "END"}
    calls = (tool("d", title="Edit", content=diff), tool("e", title="Cat", rawOutput=endless))
    app = Host(user(0), *calls)
    async with app.run_test(size=(60, 40)) as pilot:
        await settle(pilot)
        rows = [row for row in app.seen() if row]
        assert "-old" in rows and "\u2026 46 more lines" in rows
        assert rows[-1].endswith("END") and sum("xxx" in row for row in rows) == 8


async def test_what_ended_calls_show_is_a_setting() -> None:
    diff = [{"type": "diff", "path": "a.py", "oldText": "old\n", "newText": "new\n"}]
    edit = tool("d", title="Edit", content=diff, status="completed")
    app = Host(user(0), edit, tool("t", title="Build"), told("t", 30, "completed"))
    async with app.run_test(size=(60, 40)) as pilot:
        await settle(pilot)
        assert "-old" in app.seen() and output(app) == []
        app.view.show_calls("output")
        await settle(pilot)
        assert "-old" in app.seen() and output(app) == [f"t out {n}" for n in range(20, 30)]
        app.view.show_calls("folded")
        await settle(pilot)
        assert "-old" not in app.seen() and output(app) == []


def block_id(app: Host) -> int:
    call = app.view.transcript.tool("t")
    assert call is not None
    return call.id
