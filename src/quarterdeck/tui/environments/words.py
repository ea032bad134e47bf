"""How the parts of environments are put into words."""

from datetime import datetime
from textwrap import wrap

from quarterdeck.store.environments import Scope
from quarterdeck.wire.warm_pools import WarmPool

LEAST_ROOM = 20
"""Cells below which text is cut rather than folded."""
HIDDEN = "••••••••"
"""Stands for a secret, whatever its length."""

TITLES = {
    Scope.GLOBAL: "Everywhere",
    Scope.ORGANIZATION: "Organization",
    Scope.OWN: "Your own",
}


def moment(at: datetime) -> str:
    """A moment in the person's own zone."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M")


def day(at: datetime) -> str:
    """The day of a moment, in the person's own zone."""
    return at.astimezone().strftime("%Y-%m-%d")


def pool_note(pool: WarmPool | None) -> tuple[str, str]:
    """A pool in a word or two, and the style of the words."""
    if pool is None or not pool.enabled:
        return "", "plain"
    if pool.last_failure_reason is not None and not pool.ready_count:
        return "✗ pool", "error"
    if pool.ready_count:
        return f"● {pool.ready_count} warm", "plain"
    return "◌ warming", "plain"


def counted(count: int, word: str) -> str:
    """`1 line`, `2 lines`."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def size_of(text: str) -> str:
    """How much text there is."""
    return counted(len(text.splitlines()), "line") if text else "empty"


def wrapped(text: str, width: int) -> list[str]:
    """The lines of a text, folded at blanks into as many cells as there are."""
    room = max(width, LEAST_ROOM)
    return [
        part
        for line in text.splitlines()
        for part in wrap(line, room, drop_whitespace=True, replace_whitespace=False) or [""]
    ]
