"""What an agent reported of its tool calls that have not ended.

A permission request says of its call only what changed, as an update does: some send its id alone.
"""

from typing import Any

Update = dict[str, Any]

_FIELDS = frozenset({"title", "kind", "rawInput", "locations"})
_ENDED = frozenset({"completed", "failed"})


class OpenCalls:
    """The open calls of a session."""

    def __init__(self) -> None:
        self._calls: dict[str, Update] = {}

    def take(self, update: Update) -> None:
        """Take an update of the session."""
        id = update.get("toolCallId")
        if not isinstance(id, str):
            return
        if update.get("status") in _ENDED:
            self._calls.pop(id, None)
            return
        told = {name: update[name] for name in _FIELDS if update.get(name) is not None}
        self._calls[id] = {**self._calls.get(id, {}), **told}

    def completed(self, call: Update) -> Update:
        """Return the call of a request with what was reported before."""
        told = {name: value for name, value in call.items() if value is not None}
        return {**self._calls.get(str(call.get("toolCallId")), {}), **told}

    def clear(self) -> None:
        """Forget all calls: the turn has ended."""
        self._calls.clear()
