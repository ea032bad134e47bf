"""The transcript in the cockpit: finding, opening, exporting, images."""

import asyncio
import json
import stat
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from quarterdeck.store.signals import ReplicaChanged, TranscriptChanged
from quarterdeck.transcript.fold import Transcript
from quarterdeck.tui.widgets.completions import Completion, Completions
from quarterdeck.wire.chats import Base64Source, Image, SendMessage
from tests.support.waiting import eventually, pauses
from tests.tui_chat.desk import opened
from tests.tui_chat.test_chat_composer import png
from tests.tui_shell.frozen import FrozenCockpit, Story, every_block, said, screen_text
from tests.tui_shell.live import Installation


@pytest.mark.long
async def test_words_are_found_in_what_is_folded_and_further_up(live: Installation) -> None:
    made = await live.create("long")
    async with live.client() as client:
        for number in range(110):
            text = f"```sh\necho message-{number:03}; echo hidden-{number:03} >&2\n```"
            await client.messages.send(made.id, SendMessage(message=text))
        for pause in islice(pauses(0.05), 400):
            if (await client.history.page(made.id, limit=1)).total >= 4 * 110:
                break
            await asyncio.sleep(pause)
    async with live.cockpit() as desk:
        pane = await opened(desk, "long")
        await eventually(lambda: not desk.replica("long").works, "the end of all turns")
        await desk.see("message-109")
        assert pane.chat is not None and pane.chat.has_older
        await desk.press("tab", "slash")
        await eventually(lambda: desk.focus == "Input", "the line to find in")
        await desk.write("message-109")
        await desk.press("enter")
        for pause in islice(pauses(0.01), 20):
            if "on from the start · 1 of " in desk.text:
                break
            await desk.press("n")
            await desk.pilot.pause(pause)
        await desk.see("on from the start · 1 of ", "+")
        await desk.press("slash", "ctrl+u")
        await desk.write("message-000")
        await desk.see("not found")
        await desk.press("enter")
        await eventually(lambda: desk.focus == "ChatTranscript")
        await eventually(lambda: "echo message-000" in desk.text, "what stands on the first page")
        assert not pane.chat.has_older
        await desk.press("n", "N")
        await desk.see("message-000", " of ")
        await desk.press("slash", "escape")
        await eventually(lambda: not pane.find_line.display)
        assert not pane.transcript.finding


async def test_found_words_are_marked_and_calls_opened(frozen: FrozenCockpit) -> None:
    state = frozen.add("alpha")
    story = Story().user("go")
    story.update(
        "tool_call",
        toolCallId="t",
        title="cat log",
        kind="execute",
        status="completed",
        content=[{"type": "content", "content": {"type": "text", "text": "one\nNeedle here\ntwo"}}],
    )
    for number in range(60):
        story.say(f"\n\nparagraph {number}\n\n")
    said(state, story.events)
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        await pilot.press("enter")
        await eventually(lambda: "paragraph 59" in screen_text(frozen))
        await pilot.press("tab", "slash", *"needle")
        await eventually(lambda: "Needle here" in screen_text(frozen), "the opened call")
        await pilot.press("enter", "n")
        await pilot.pause()
        view = frozen.screen.query_one("ChatTranscript")
        marked = {
            segment.text
            for y in range(view.size.height)
            for segment in view.render_line(y)
            if segment.style and segment.style.bgcolor != view.rich_style.bgcolor
        }
        assert marked == {"Needle"}
        assert "1 of 1" in screen_text(frozen)


@pytest.mark.long
async def test_the_place_is_counted_and_the_search_goes_round(frozen: FrozenCockpit) -> None:
    state = frozen.add("alpha")
    story = Story().user("go")
    for number in range(60):
        story.say(f"\n\nparagraph {number} {'twig and twig' if number % 20 == 0 else ''}\n\n")
    said(state, story.events)
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        await pilot.press("enter")
        await eventually(lambda: "paragraph 59" in screen_text(frozen))
        await pilot.press("tab", "slash", *"twig")
        await eventually(lambda: "5 of 6" in screen_text(frozen), "the row above the window")
        await pilot.press("enter", "n")
        await eventually(lambda: "6 of 6" in screen_text(frozen))
        await pilot.press("n")
        await eventually(lambda: "on from the start · 1 of 6" in screen_text(frozen))
        await eventually(lambda: "paragraph 0 twig" in screen_text(frozen))
        await pilot.press("N")
        await eventually(lambda: "on from the end · 6 of 6" in screen_text(frozen))
        await pilot.press("N")
        await eventually(lambda: "from" not in screen_text(frozen))
        await pilot.press("slash", *"s")
        await eventually(lambda: "not found" in screen_text(frozen))


async def test_the_head_line_follows_the_plan(frozen: FrozenCockpit) -> None:
    state = frozen.add("alpha", processing=True)
    story = Story().user("go")
    said(state, story.events)
    chat = state.first_chat
    assert chat is not None and chat.transcript is not None

    def plan(done: int) -> None:
        assert chat.transcript is not None
        steps = ["completed"] * done + ["pending"] * (5 - done)
        entries = [{"content": f"step {n}", "status": one} for n, one in enumerate(steps)]
        story.update("plan", entries=entries)
        change = chat.transcript.append(story.events[-1])
        frozen.app_state.publish(TranscriptChanged(state.id, chat.id, change))

    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: "● working" in screen_text(frozen))
        for done in (0, 1, 5):
            plan(done)
            await eventually(lambda: f"plan {done}/5" in screen_text(frozen))  # noqa: B023


@pytest.mark.long
async def test_escape_closes_the_search_before_it_leaves(frozen: FrozenCockpit) -> None:
    said(frozen.add("alpha"), every_block())
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: "limit = 30" in screen_text(frozen))
        await pilot.press("tab", "slash", *"limit", "enter")
        await eventually(lambda: type(frozen.focused).__name__ == "ChatTranscript")
        assert "1 of " in screen_text(frozen) or "2 of " in screen_text(frozen)
        await pilot.press("escape")
        await eventually(
            lambda: " of " not in screen_text(frozen).splitlines()[-6], "the closed search"
        )
        assert not frozen.screen.query_one("FindLine").display
        assert type(frozen.focused).__name__ == "ChatTranscript"
        await pilot.press("escape")
        await eventually(lambda: type(frozen.focused).__name__ == "ReplicaListView")


@pytest.mark.long
async def test_what_comes_and_goes_below_the_transcript_does_not_wrap_it_again(
    frozen: FrozenCockpit,
) -> None:
    state = frozen.add("alpha")
    said(state, every_block())
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: "limit = 30" in screen_text(frozen))
        view = frozen.screen.query_one("ChatTranscript")
        width = view.size.width
        frozen.screen.query_one(Completions).offer([Completion("/plan", "Plan mode")])
        await eventually(lambda: "Plan mode" in screen_text(frozen))
        assert view.size.width == width
        frozen.screen.query_one(Completions).close()
        await pilot.press("tab", "slash")
        await eventually(lambda: "find in the transcript" in screen_text(frozen))
        assert view.size.width == width
        state.record.status = "error"
        frozen.app_state.publish(ReplicaChanged(state.id))
        await eventually(lambda: "✗ failed" in screen_text(frozen))
        assert view.size.width == width


async def test_the_details_of_completions_are_a_column(frozen: FrozenCockpit) -> None:
    frozen.add("alpha")
    names = ["@src/prices.py", "@tests/test_prices_of_everything.py", "@" + "x" * 55]
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: "○ idle" in screen_text(frozen))
        found = [Completion(name, "unchanged") for name in names]
        frozen.screen.query_one(Completions).offer(found)
        await eventually(lambda: "unchanged" in screen_text(frozen))
        rows = [row for row in screen_text(frozen).splitlines() if "unchanged" in row]
        first, second, third = (row.index("unchanged") - row.index("@") for row in rows)
        assert first == second < third


async def test_a_chat_says_that_its_last_turn_failed(frozen: FrozenCockpit) -> None:
    state = frozen.add("alpha")
    (chat,) = state.chats.values()
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: "○ idle" in screen_text(frozen))
        chat.last_turn_failed = True
        frozen.app_state.publish(ReplicaChanged(state.id))
        await eventually(lambda: "✗ the last turn failed" in screen_text(frozen))
        chat.start_turn("m", chat.record.updated_at)
        frozen.app_state.publish(ReplicaChanged(state.id))
        await eventually(lambda: "● working" in screen_text(frozen))


@pytest.mark.long
async def test_who_sends_sees_the_end(frozen: FrozenCockpit) -> None:
    state = frozen.add("alpha")
    story = Story().user("go")
    for number in range(60):
        story.say(f"\n\nparagraph {number}\n\n")
    said(state, story.events)
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: "paragraph 59" in screen_text(frozen))
        await pilot.press("tab", "home", "m", *"more")
        await eventually(lambda: "│ more" in screen_text(frozen))
        assert "paragraph 59" not in screen_text(frozen)
        await pilot.press("enter")
        await eventually(lambda: "paragraph 59" in screen_text(frozen), "the end")


@pytest.mark.long
async def test_a_chat_is_written_to_new_files_only(live: Installation, tmp_path: Path) -> None:
    made = await live.create("alpha", "```sh\necho out\n```")
    async with live.cockpit() as desk, live.client() as client:
        await opened(desk, "alpha")
        await desk.see("1 block ran", "○ idle")
        taken = tmp_path / "taken.md"
        taken.write_text("mine")
        await desk.press("tab", "e")
        await desk.see("Export the chat")
        await desk.press("ctrl+u")
        await desk.write(str(taken))
        await desk.press("enter")
        await desk.see("The file exists and was not changed")
        assert taken.read_text() == "mine"
        await desk.press("ctrl+u")
        await desk.write(str(tmp_path / "new.md"))
        await desk.press("enter")
        await desk.miss("Export the chat")
        text = (tmp_path / "new.md").read_text()
        assert "## You, " in text and "```\nout\n```" in text and "1 block ran" in text

        await desk.press("e")
        await desk.see("Export the chat")
        await desk.press("ctrl+u")
        await desk.write(str(tmp_path / "new.jsonl"))
        await desk.press("enter")
        await desk.miss("Export the chat")
        lines = (tmp_path / "new.jsonl").read_text().splitlines()
        page = await client.history.page(made.id)
        assert [json.loads(line) for line in lines] == [
            event.model_dump(mode="json") for event in page.events
        ]


@pytest.mark.long
async def test_images_of_a_message_are_saved(live: Installation, tmp_path: Path) -> None:
    import base64

    made = await live.create("alpha")
    source = Base64Source(
        type="base64", media_type="image/png", data=base64.b64encode(png()).decode()
    )
    async with live.cockpit() as desk, live.client() as client:
        await opened(desk, "alpha")
        await desk.see("○ idle")
        await client.messages.send(
            made.id, SendMessage(message="look", images=[Image(source=source)])
        )
        await desk.see("[image: image/png, ")
        await eventually(lambda: not desk.replica("alpha").works)
        await desk.press("tab", "home", "s")
        await desk.see("Save 1 image")
        await desk.press("ctrl+u")
        await desk.write(str(tmp_path / "kept"))
        await desk.press("enter")
        await desk.miss("Save 1 image")
        assert (tmp_path / "kept.png").read_bytes() == png()


async def test_a_block_is_opened_in_the_pager_and_all_in_the_editor(
    frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quarterdeck.tui.panes import chat_dialogs

    state = frozen.add("alpha")
    said(state, every_block())
    seen: list[tuple[str, list[str]]] = []

    async def look_at(
        app: object, name: str, data: bytes, program: Callable[[], list[str]]
    ) -> None:
        seen.append((data.decode(), program()))

    monkeypatch.setattr(chat_dialogs, "look_at", look_at)
    monkeypatch.setenv("PAGER", "pager -x")
    monkeypatch.setenv("VISUAL", "editor 'with blank'")
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        await pilot.press("enter")
        await pilot.pause()
        await pilot.press("tab", "home", "o", "O")
        await eventually(lambda: len(seen) == 2)
    assert seen[0] == ("> Fix the **login** time-out", ["pager", "-x"])
    assert seen[1][1] == ["editor", "with blank"]
    assert "## You, 2026-11-20 12:00\n\nFix the **login** time-out" in seen[1][0]
    assert "```diff\n--- login.py" in seen[1][0]


def test_code_in_a_document_cannot_end_its_fence() -> None:
    from quarterdeck.transcript.export import markdown_of

    story = Story().user("go")
    text = {"type": "text", "text": "````\ninside\n````"}
    story.update(
        "tool_call",
        toolCallId="t",
        title="cat",
        status="completed",
        content=[
            {"type": "content", "content": text},
            {"type": "content", "content": {"type": "text", "text": "a\n`````\nb"}},
        ],
    )
    assert "``````\na\n`````\nb\n``````" in markdown_of(Transcript(story.events).blocks)


def test_a_new_file_is_the_persons_alone_to_replace(tmp_path: Path) -> None:
    from quarterdeck.store.exporting import write_new

    write_new(tmp_path / "a", b"1")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "a", b"2")
    assert (tmp_path / "a").read_bytes() == b"1"
    assert stat.S_ISREG((tmp_path / "a").stat().st_mode)


async def test_a_click_on_a_link_opens_it_after_asking_or_copies_it(
    frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    story = Story().user("go to https://user.example").say("read [this](https://agent.example/a).")
    output = [{"type": "content", "content": {"type": "text", "text": "at https://tool.example/"}}]
    story.update("tool_call", toolCallId="t", title="open", status="completed", content=output)
    said(frozen.add("alpha"), story.events)
    browser = tmp_path / "xdg-open"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("DISPLAY", ":9")
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.press("enter", "tab")
        await eventually(lambda: "read this." in screen_text(frozen), "the transcript")
        view = frozen.screen.query_one("ChatTranscript")

        async def click(words: str) -> None:
            rows = screen_text(frozen).splitlines()
            y, x = next((y, row.index(words)) for y, row in enumerate(rows) if words in row)
            left, top = view.region.offset
            await pilot.click("ChatTranscript", offset=(x - left, y - top))

        await click("this")
        await eventually(lambda: "Open this link?" in screen_text(frozen), "the question")
        assert "https://agent.example/a" in screen_text(frozen)
        await pilot.press("y")
        opened_at = tmp_path / "opened"
        await eventually(lambda: opened_at.exists() and opened_at.read_text() != "", "the browser")
        assert opened_at.read_text() == "https://agent.example/a\n"
        monkeypatch.setenv("SSH_CONNECTION", "1 2 3 4")
        await click("https://user")
        await eventually(lambda: frozen.clipboard == "https://user.example", "the copy")
        await pilot.press("end", "enter")
        await eventually(lambda: "at https://tool" in screen_text(frozen), "the opened call")
        await click("https://tool")
        await eventually(lambda: frozen.clipboard == "https://tool.example/", "the copy")
