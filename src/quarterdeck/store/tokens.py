"""What a chat's agent uses of its model, as its events tell it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from quarterdeck.wire.history import AgentEvent, AgentEventType

_USAGE_UPDATE = "usage_update"


@dataclass(frozen=True)
class TokenUse:
    """`context` of `window` tokens are taken; `turn` were used by the turn that ended last."""

    context: int | None = None
    window: int | None = None
    turn: int | None = None

    def after(self, event: AgentEvent) -> "TokenUse":
        """The same after an event; itself when that told nothing."""
        payload = event.payload
        match event.type:
            case AgentEventType.SESSION_UPDATE if payload.get("sessionUpdate") == _USAGE_UPDATE:
                used, size = _count(payload.get("used")), _count(payload.get("size"))
                return replace(self, context=used, window=size)
            case AgentEventType.TURN_RESULT:
                usage = payload.get("usage")
                total = _count(usage.get("totalTokens")) if isinstance(usage, dict) else None
                return self if total is None else replace(self, turn=total)
            case _:
                return self

    def after_all(self, events: Iterable[AgentEvent]) -> "TokenUse":
        """The same after many."""
        use = self
        for event in events:
            use = use.after(event)
        return use


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
