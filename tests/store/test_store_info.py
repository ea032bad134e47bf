"""What the info panel needs: read once, and what events say of it."""

from typing import Any
from uuid import UUID

import httpx
import pytest

from quarterdeck.store.chats import TokenUse
from quarterdeck.store.replicas import is_missing, read_info
from quarterdeck.wire.history import AgentEvent
from tests.store.conftest import NOW, PlayedService, Watched
from tests.store.test_store_app_state import detailed, event


def agent_event(type: str, **payload: Any) -> AgentEvent:
    return AgentEvent.model_validate({"timestamp": NOW, "type": type, "payload": payload})


def test_tokens_are_what_the_last_update_and_the_last_turn_said() -> None:
    update = {"sessionUpdate": "usage_update", "used": 4_100, "size": 200_000}
    use = TokenUse().after_all(
        [
            agent_event("acp-session_update", **update),
            agent_event("turn-result", usage={"totalTokens": 99}, stopReason="end_turn"),
            agent_event("turn-result", stopReason="cancelled"),
            agent_event("turn-result", usage={"totalTokens": "many"}),
            agent_event("acp-session_update", sessionUpdate="agent_message_chunk"),
        ]
    )
    assert use == TokenUse(context=4_100, window=200_000, turn=99)
    odd = agent_event("acp-session_update", sessionUpdate="usage_update", used="x", size=-1)
    assert use.after(odd) == TokenUse(turn=99)


def cost(amount: Any, currency: Any = "USD") -> AgentEvent:
    told = {"amount": amount, "currency": currency}
    return agent_event("acp-session_update", sessionUpdate="usage_update", used=1, cost=told)


def test_the_cost_is_the_sum_over_the_sessions_of_the_agent() -> None:
    plain = agent_event("acp-session_update", sessionUpdate="usage_update", used=1, size=2)
    use = TokenUse().after_all([cost(0.25), plain, cost(0.5), plain])
    assert (use.cost, use.currency) == (0.5, "USD")
    # The agent was started again and counts from nothing.
    assert use.after_all([cost(0.125), cost(0.25)]).cost == 0.75
    for odd in (cost("much"), cost(-1), cost(True), cost(float("inf")), cost(1, "\x1b[31m")):
        assert use.after(odd).cost == 0.5
    assert TokenUse().after(plain).cost is None


async def test_it_is_read_once_and_events_are_newer(
    watched: Watched, service: PlayedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    plain = service._answer

    def answer(method: str, path: str) -> httpx.Response:
        if path.endswith("/previews"):
            asked.append(path)
            shown = {"port": 80, "publicUrl": "http://one", "createdAt": NOW}
            return httpx.Response(200, json={"previews": [shown]})
        return plain(method, path)

    monkeypatch.setattr(service, "_answer", answer)
    id: UUID = service.add("one")
    await detailed(watched, id)
    state = watched.deck.replicas[id]
    assert is_missing(watched.deck, state)
    await read_info(watched.deck, state)
    assert not is_missing(watched.deck, state) and len(asked) == 1
    assert [one.port for one in state.previews or ()] == [80]
    await watched.until(lambda: str(id) in service.streams, "the stream")
    told = {"port": 81, "publicUrl": "http://two", "createdAt": NOW}
    service.streams[str(id)].put_nowait(event(1, "preview.changed", previews=[told]))
    await watched.until(lambda: [p.port for p in state.previews or ()] == [81], "the event")
    assert len(asked) == 1
