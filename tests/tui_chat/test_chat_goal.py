"""The dialog of a chat's goal: set, changed and removed."""

from uuid import UUID

import pytest
from textual import events

from quarterdeck.tui.kit.dialogs import AskScreen
from quarterdeck.tui.panes.chat import ChatPane
from quarterdeck.wire.chats import ChatGoal
from tests.support.waiting import eventually
from tests.tui_shell.frozen import FrozenCockpit, screen_text


async def test_a_goal_is_pasted_in_full_and_removed(
    frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = frozen.add("alpha")
    (chat,) = state.chats.values()
    commands, changes = frozen.app_state.chat_commands, list[object]()

    async def set_goal(_: UUID, __: UUID, objective: str | None, budget: int | None) -> bool:
        changes.append((objective, budget))
        chat.record.goal = ChatGoal(objective=objective or "", status="active")
        return True

    async def remove_goal(_: UUID, chat_id: UUID) -> None:
        changes.append(chat_id)

    monkeypatch.setattr(commands, "set_goal", set_goal)
    monkeypatch.setattr(commands, "remove_goal", remove_goal)
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: frozen.focused is frozen.screen.query_one(ChatPane).composer)
        await pilot.press("alt+g")
        await eventually(lambda: isinstance(frozen.screen, AskScreen))
        assert frozen.focused is not None
        frozen.focused.post_message(events.Paste("Make it\nfast:\n\nunder 1 s\n"))
        await eventually(lambda: "Make it fast: under 1 s" in screen_text(frozen))
        assert "enter next · ctrl+s set" in screen_text(frozen)
        await pilot.press("enter", *"10k", "enter")
        await eventually(lambda: not isinstance(frozen.screen, AskScreen))
        assert changes == [("Make it fast: under 1 s", 10_000)]
        await pilot.press("alt+g")
        await eventually(lambda: isinstance(frozen.screen, AskScreen))
        await pilot.press("delete")
        await eventually(lambda: "empty removes the goal" in screen_text(frozen))
        await pilot.press("ctrl+s")
        await eventually(lambda: not isinstance(frozen.screen, AskScreen))
        assert changes[1:] == [chat.record.id]
