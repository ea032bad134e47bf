"""One mark, word and color per state, the same wherever a state is shown."""

from dataclasses import dataclass

from quarterdeck.store.attention import WORDS, Attention


@dataclass(frozen=True)
class Mark:
    """A one-cell sign, its word, and the name of its color."""

    sign: str
    word: str
    color: str


_SIGNS = {
    Attention.ASKS: ("▲", "warning"),
    Attention.PLAN: ("▲", "warning"),
    Attention.FAILED: ("✗", "error"),
    Attention.DONE_UNSEEN: ("✓", "success"),
    Attention.WORKING: ("●", "primary"),
    Attention.PREPARING: ("◌", "secondary"),
    Attention.IDLE: ("○", "muted"),
    Attention.SLEEPING: ("☾", "muted"),
    Attention.ARCHIVED: ("▪", "muted"),
}
MARKS = {state: Mark(sign, WORDS[state], color) for state, (sign, color) in _SIGNS.items()}
