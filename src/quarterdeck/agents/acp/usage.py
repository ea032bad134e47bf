"""What a turn used, of agents that tell it by turn and of those that add it up."""

from typing import Any


class Usage:
    """Follows one agent process."""

    def __init__(self, adds_up: bool) -> None:
        self._adds_up = adds_up
        self._before: dict[str, Any] = {}

    def of_turn(self, told: dict[str, Any] | None) -> dict[str, Any] | None:
        """The counts of the turn that ended."""
        if told is None or not self._adds_up:
            return told
        before, self._before = self._before, told
        return {name: _less(count, before.get(name)) for name, count in told.items()}


def _less(count: Any, before: Any) -> Any:
    if isinstance(count, int) and isinstance(before, int) and count >= before:
        return count - before
    return count
