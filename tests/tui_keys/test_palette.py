"""The palette offers what is possible, and does it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import pytest
from rich.style import Style

from quarterdeck.tui.fuzzy import FuzzyMatch
from quarterdeck.tui.options import read_options
from quarterdeck.tui.palette import PaletteEntry, _line
from quarterdeck.tui.panes.chat import ChatPane
from quarterdeck.wire.chats import SlashCommand
from tests.support.waiting import eventually
from tests.tui_shell.frozen import FrozenCockpit
from tests.tui_shell.live import Desk


def test_a_text_that_is_cut_does_not_touch_its_note() -> None:
    entry = PaletteEntry("word " * 30, "16:56", "alpha")
    shown = "".join(
        segment.text for segment in _line(entry, FuzzyMatch(0, ()), 60, Style(), Style())
    )
    assert shown.endswith("\u2026 16:56  ") and len(shown) == 60


@asynccontextmanager
async def cockpit(tmp_path: Path, keys: dict[str, object] | None = None) -> AsyncGenerator[Desk]:
    app = FrozenCockpit(tmp_path / "client", options=read_options({"keys": keys or {}}))
    app.add("fix-login", awaiting_input=True)
    app.add("old-idea", "sleeping")
    async with app.run_test(size=(100, 34), notifications=True) as pilot:
        desk = Desk(app, pilot)
        await desk.see("fix-login")
        yield desk


async def test_an_action_is_found_and_done(tmp_path: Path) -> None:
    async with cockpit(tmp_path) as desk:
        await desk.press("ctrl+p")
        await desk.see("Search commands and replicas")
        await desk.press(*"delask", "enter")
        await desk.see("Delete fix-login?")


async def test_all_words_of_a_line_find_it(tmp_path: Path) -> None:
    async with cockpit(tmp_path) as desk:
        await desk.press("ctrl+p", *"go to envir")
        await desk.see("go to Environments")
        assert desk.text.index("go to Environments") < desk.text.index("Group by repository")
        await desk.press("ctrl+u", *"new")  # as in the bottom line
        await desk.see("Create a replica")
        await desk.press("ctrl+u", *"cost")
        await desk.see("Info panel: cost, tokens")
        await desk.press("ctrl+u", *"quit")
        await desk.see("Quit")
        assert desk.text.count("Quit") == 1


async def test_a_setting_is_found_and_its_row_opened(tmp_path: Path) -> None:
    async with cockpit(tmp_path) as desk:
        await desk.press("ctrl+p", *"mouse")
        await desk.see("setting Mouse", "Appearance and terminal")
        await desk.press("enter", "enter")
        await desk.see("Mouse", "off")
        await desk.press("escape", "ctrl+p", *"provider cred", "enter")
        await desk.see("[2 Agents and credentials]")


@pytest.mark.long
async def test_keys_are_told_as_they_are(tmp_path: Path) -> None:
    async with cockpit(tmp_path, {"replica.delete": "D", "replica.new": []}) as desk:
        await desk.press("ctrl+p", *"delask")
        await desk.see("Delete (asks first)", " D ")
        await desk.press("ctrl+u", *"create")
        await desk.see("Create a replica")
        await desk.press("enter")
        await desk.see("New replica")


@pytest.mark.long
async def test_what_makes_no_sense_now_is_not_offered(tmp_path: Path) -> None:
    async with cockpit(tmp_path) as desk:
        await desk.press("ctrl+p", *"wake")
        await desk.see("No matches")
        await desk.press("escape", "down", "ctrl+p", *"wake")
        await desk.see("Wake / retry")
        await desk.press("ctrl+u", *"sleep (st")
        await desk.miss("Sleep (stops processes")


@pytest.mark.long
async def test_a_replica_is_gone_to_from_the_composer(tmp_path: Path) -> None:
    async with cockpit(tmp_path) as desk:
        await desk.press("enter")
        await eventually(lambda: desk.focus == "Composer")
        await desk.press("x", "ctrl+p")
        await desk.see("Search commands and replicas")
        await desk.press(*"oldid", "enter")
        await eventually(lambda: desk.app.app_state.on_screen == desk.replica("old-idea").id)


@pytest.mark.long
async def test_the_chat_next_to_the_list_is_acted_on_from_the_list(tmp_path: Path) -> None:
    async with cockpit(tmp_path) as desk:
        await desk.press("enter")
        await eventually(lambda: desk.focus == "Composer")
        await desk.press("escape", "ctrl+p", *"rename")
        await desk.see("Rename the chat")
        await desk.press("enter")
        await desk.see("Rename the chat", "Name")


@pytest.mark.long
async def test_what_the_widget_does_itself_is_done_by_its_key(tmp_path: Path) -> None:
    async with cockpit(tmp_path) as desk:
        await desk.press("enter")
        await eventually(lambda: desk.focus == "Composer")
        await desk.press("ctrl+p")
        await desk.see("Search commands and replicas")
        await desk.press(*"plan mode", "enter")
        await desk.see("Message · plan mode")


@pytest.mark.long
async def test_closing_leaves_everything(tmp_path: Path) -> None:
    async with cockpit(tmp_path) as desk:
        await desk.press("enter")
        await eventually(lambda: desk.focus == "Composer")
        await desk.press("ctrl+p")
        await desk.see("Search commands and replicas")
        await desk.press("escape")
        await eventually(lambda: desk.focus == "Composer")
        await desk.press("y", "o")
        await desk.see("│ yo")


async def test_commands_of_the_agent_are_found_in_a_chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slash_commands(*_: UUID) -> list[SlashCommand]:
        review = "Review the changes"
        return [
            SlashCommand(command="/compact", description="Summarize it", providers=["builtin"]),
            SlashCommand(
                command="/review", description=review, argument_hint="what", providers=["builtin"]
            ),
        ]

    app = FrozenCockpit(tmp_path / "client")
    app.add("fix-login")
    monkeypatch.setattr(app.app_state.chat_commands, "slash_commands", slash_commands)
    sent: list[str] = []
    async with app.run_test(size=(100, 34), notifications=True) as pilot:
        desk = Desk(app, pilot)
        await desk.press("enter")
        await eventually(lambda: desk.focus == "Composer")
        chat = app.screen.query_one(ChatPane)
        monkeypatch.setattr(chat.messages, "send", lambda text, **_: sent.append(text))
        await desk.press("ctrl+p", *"compact")
        await desk.see("chat /compact Summarize it")
        await desk.press("enter")
        await eventually(lambda: sent == ["/compact "])
        await desk.press(*"bugs", "ctrl+p", "slash", *"review")
        await desk.see("chat /review <what> Review the changes")
        await desk.press("enter")
        await desk.see("│ /review bugs")
        await desk.press("ctrl+p", *"summar")
        await desk.see("/compact")
        await desk.press("enter")
        await desk.see("│ /compact /review bugs")
        assert sent == ["/compact "]


async def test_enter_waits_for_the_commands_of_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slash_commands(*_: UUID) -> list[SlashCommand]:
        asked.set()
        await answer.wait()
        return [SlashCommand(command="/compact", description="Shorten", providers=["builtin"])]

    app = FrozenCockpit(tmp_path / "client")
    app.add("fix-login")
    monkeypatch.setattr(app.app_state.chat_commands, "slash_commands", slash_commands)
    sent: list[str] = []
    async with app.run_test(size=(100, 34), notifications=True) as pilot:
        desk = Desk(app, pilot)
        await desk.press("enter")
        await eventually(lambda: desk.focus == "Composer")
        chat = app.screen.query_one(ChatPane)
        monkeypatch.setattr(chat.messages, "send", lambda text, **_: sent.append(text))
        await desk.press("ctrl+p")
        await asked.wait()
        desk.burst([*"/compact", "enter", *"bugs"])
        await desk.see("Reading the agent's commands")
        assert sent == []
        answer.set()
        await eventually(lambda: sent == ["/compact "])
        await desk.see("│ bugs")
