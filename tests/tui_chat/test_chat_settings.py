"""Permission mode, model and thinking level of a chat's agent, as the pane shows and changes them."""

from uuid import UUID

import pytest

from quarterdeck.tui.kit.dialogs import ChooseScreen
from quarterdeck.tui.panes.chat import ChatPane
from quarterdeck.wire.chats import ChatSetting, ChatSettings, SettingChoice, SettingValue
from tests.support.waiting import eventually
from tests.tui_chat.desk import opened
from tests.tui_shell.frozen import FrozenCockpit
from tests.tui_shell.live import Installation

ASK, EDITS = SettingValue(id="ask", name="Ask first"), SettingValue(id="edits", name="Accept edits")


async def test_settings_are_shown_and_chosen_by_key(
    frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = frozen.add("alpha")
    (chat,) = state.chats.values()
    chat.record.permission_mode = ASK
    chat.record.model = SettingValue(id="big", name="Big")
    commands, chosen = frozen.app_state.chat_commands, list[tuple[str, str]]()
    choices = [SettingChoice(**vars(ASK), description="Asks."), SettingChoice(**vars(EDITS))]
    level = SettingChoice(id="ultra", name="Ultra")
    offered = ChatSettings(
        permission_mode=ChatSetting(current=ASK, choices=choices),
        thinking_level=ChatSetting(choices=[level]),
    )

    async def settings(*_: UUID) -> ChatSettings:
        return offered

    async def change(_: UUID, __: UUID, name: str, value: str) -> None:
        chosen.append((name, value))

    monkeypatch.setattr(commands, "settings", settings)
    monkeypatch.setattr(commands, "change_setting", change)
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        await pilot.press("enter")
        pane = frozen.screen.query_one(ChatPane)
        await eventually(lambda: frozen.focused is pane.composer)
        assert "Ask first · Big" in pane._turn_words
        for key, option in (("alt+s", "edits"), ("alt+e", "ultra")):
            await pilot.press(key)
            await eventually(lambda: isinstance(frozen.screen, ChooseScreen))
            await pilot.press(*option, "enter")
            await eventually(lambda: not isinstance(frozen.screen, ChooseScreen))
        await eventually(lambda: len(chosen) == 2)
        assert chosen == [("permission_mode", "edits"), ("thinking_level", "ultra")]


async def test_an_agent_without_settings_says_so(live: Installation) -> None:
    await live.create("alpha")
    async with live.cockpit() as desk:
        await opened(desk, "alpha")
        await desk.press("alt+s")
        await desk.see("The agent offers no permission modes.")
