"""A replica of which everything is known."""

from typing import Any
from uuid import UUID

from textual.pilot import Pilot

from quarterdeck.store.chats import TokenUse
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.wire.chats import ChatGoal
from quarterdeck.wire.events import Preview
from quarterdeck.wire.replicas import ReplicaEnvironment
from tests.support.waiting import eventually
from tests.tui_shell.frozen import START, FrozenCockpit, screen_text

ENVIRONMENT = UUID(int=9)


def known_replica(app: FrozenCockpit, name: str = "fix-login") -> ReplicaState:
    """Every section of the panel has something in it."""
    state = app.add(
        name,
        coding_agent="codex",
        model="gpt-x",
        size="small",
        lifecycle_policy="sleep_when_done",
        auto_stop_minutes=30,
        environment_id=str(ENVIRONMENT),
        repository_statuses=[
            {
                "repository": "shop",
                "branch": "qd/fix-login",
                "git_diff": {"added": 120, "removed": 8},
                "pr_urls": ["https://host-a.example/me/shop/pull/12", "javascript:alert(1)"],
            }
        ],
        pull_requests=[
            {
                "repository": "shop",
                "number": 12,
                "url": "https://host-a.example/me/shop/pull/12",
            }
        ],
    )
    state.record.environment = ReplicaEnvironment(
        isolation="bubblewrap",
        size_limited=False,
        env_vars_set=["A", "B"],
        skills_installed=["one"],
    )
    state.previews = [
        Preview(port=3000, public_url="http://127.0.0.1:41000/", created_at=START),
        Preview(port=8080, public_url="http://127.0.0.1:41001/\x1b[31m", created_at=START),
    ]
    app.app_state.environment_names[ENVIRONMENT] = "shop"
    chat = state.first_chat
    assert chat is not None
    chat.record.provider = "codex"
    chat.record.goal = ChatGoal(
        objective="All tests of the login pass",
        status="active",
        token_budget=100_000,
        tokens_used=41_234,
        time_used_seconds=722,
    )
    chat.tokens = TokenUse(context=41_200, window=200_000, turn=3_456, cost=0.4249, currency="USD")
    return state


async def see(pilot: Pilot[Any], text: str, *, gone: bool = False) -> None:
    """Waits until a text is on the screen, or no longer."""
    await eventually(lambda: (text in screen_text(pilot.app)) != gone, text)
    await pilot.pause()
