"""How often to look whether something has come about."""

import time
from collections.abc import Iterator

_SHARE = 0.1
_LONGEST = 0.25


def pauses(first: float) -> Iterator[float]:
    """Seconds between looks: `first`, and then a tenth of what was waited, up to a quarter second.

    A look may be a request, whose cost is taken from what is waited for when processors are busy;
    so few looks are made at what takes long, and none comes much too late.
    """
    begun = time.monotonic()
    while True:
        waited = time.monotonic() - begun
        yield max(first, min(waited * _SHARE, _LONGEST))
