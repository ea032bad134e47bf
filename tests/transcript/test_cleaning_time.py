"""Cleaning takes time in proportion to the text, whatever is in it."""

import pytest

from quarterdeck.transcript.text import clean


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "start", ["\x90", "\x98", "\x9d", "\x9e", "\x9f", "\x90a", "\x9b", "\x1b]"]
)
def test_sequences_that_never_end(start: str) -> None:
    """50 kB of them took many seconds when each was searched for its end up to that of the text."""
    assert len(clean(start * (1_000_000 // len(start)))) <= 500_000
