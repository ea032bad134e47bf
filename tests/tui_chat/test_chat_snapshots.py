"""How the chat looks when much is said around it, at the sizes people have."""

from typing import Any
from uuid import UUID

import pytest
from textual.pilot import Pilot

from quarterdeck.tui.host_services import Attachment
from quarterdeck.tui.panes.chat import ChatPane
from quarterdeck.tui.widgets.completions import Completion, Completions
from quarterdeck.wire.chats import Chat, ChatGoal
from tests.support.waiting import eventually
from tests.tui_shell.frozen import START, FrozenCockpit, every_block, queued, said, screen_text

each_size = pytest.mark.parametrize(
    "size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"]
)


def stage(app: FrozenCockpit) -> None:
    """A replica with two chats, one of them with everything around it."""
    state = app.add("fix-login", processing=True)
    said(state, every_block())
    queued(state, *(f"message {number}" for number in range(7)))
    chat = state.first_chat
    assert chat is not None
    chat.record.title = "Log-in time-out"
    chat.record.goal = ChatGoal(
        objective="CI is green on every platform",
        status="active",
        token_budget=100_000,
        tokens_used=41_234,
        time_used_seconds=754,
    )
    other = Chat(
        id=UUID(int=9), provider="codex", created_at=START, updated_at=START, title="review"
    )
    state.take_chat(other)
    state.shown_chat = chat.id


async def opened(pilot: Pilot[Any]) -> ChatPane:
    await pilot.pause()
    await pilot.press("enter")
    await eventually(lambda: "Log-in time-out" in screen_text(pilot.app))
    pane = pilot.app.screen.query_one(ChatPane)
    pane.show_chat(UUID(int=2000))
    await eventually(lambda: "goal active" in screen_text(pilot.app))
    return pane


async def write(pilot: Pilot[Any]) -> None:
    pane = await opened(pilot)
    pane.messages.draft.attachments = [
        Attachment("error.png"),
        Attachment("report.pdf", upload_id="x"),
    ]
    pane.composer.goal_mode = True
    pane.composer.insert("look at it")
    found = [("@shop/src/login.py", "changed"), ("@shop/src/session.py", "unchanged")]
    pane.query_one(Completions).offer([Completion(*one) for one in found])
    pane.show_state()
    await eventually(lambda: "session.py" in screen_text(pilot.app))
    await pilot.pause()


async def find(pilot: Pilot[Any]) -> None:
    pane = await opened(pilot)
    await pilot.press("tab", "slash", *"limit")
    await eventually(lambda: pane.transcript.finding and "/ limit" in screen_text(pilot.app))
    await pilot.pause()


@each_size
def test_a_message_is_written(
    snap_compare: Any, frozen: FrozenCockpit, size: tuple[int, int]
) -> None:
    stage(frozen)
    assert snap_compare(frozen, terminal_size=size, run_before=write)


def test_words_are_found(snap_compare: Any, frozen: FrozenCockpit) -> None:
    stage(frozen)
    assert snap_compare(frozen, terminal_size=(120, 40), run_before=find)
