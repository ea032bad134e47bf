"""One mark, word and color per state, the same wherever a state is shown."""

from dataclasses import dataclass

from quarterdeck.store.attention import Attention


@dataclass(frozen=True)
class Mark:
    """A one-cell sign, its word, and the name of its color."""

    sign: str
    word: str
    color: str


MARKS = {
    Attention.ASKS: Mark("▲", "asks", "warning"),
    Attention.FAILED: Mark("✗", "failed", "error"),
    Attention.DONE_UNSEEN: Mark("✓", "new", "success"),
    Attention.WORKING: Mark("●", "working", "primary"),
    Attention.PREPARING: Mark("◌", "preparing", "secondary"),
    Attention.IDLE: Mark("○", "idle", "muted"),
    Attention.SLEEPING: Mark("☾", "sleeping", "muted"),
    Attention.ARCHIVED: Mark("▪", "archived", "muted"),
}
