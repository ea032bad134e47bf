"""The end of a running command's output, and when to show it again."""

import time

KEPT = 64 << 10
"""Bytes of output that are kept, counted from the end."""
SHOWN_LIVE = 16 << 10
"""Bytes shown while it runs: each update repeats earlier output."""
FASTEST = 0.05
SLOWEST = 2.0
_SLOWING = 200.0


class OutputTail:
    """The end of a command's output. Not decoded until it is shown: a cut may split a character."""

    def __init__(self) -> None:
        self._tail = bytearray()
        self._started = time.monotonic()
        self.total = 0

    def add(self, chunk: bytes) -> None:
        """Add output."""
        self.total += len(chunk)
        self._tail += chunk
        if len(self._tail) > 2 * KEPT:
            del self._tail[:-KEPT]

    @property
    def truncated(self) -> bool:
        """Whether the output is longer than what is kept."""
        return self.total > KEPT

    def text(self, limit: int = KEPT) -> str:
        """Return the last `limit` bytes as text, after a line that says how much is left out."""
        end = bytes(self._tail[-limit:])
        omitted = self.total - len(end)
        if not omitted:
            return end.decode(errors="replace")
        valid = end.lstrip(bytes(range(0x80, 0xC0)))
        return f"[{omitted:,} bytes of earlier output left out]\n" + valid.decode(errors="replace")

    def pause(self) -> float:
        """Return the seconds to the next update: 20 a second at first, fewer the longer it runs.

        An update holds all visible output, so a long build would otherwise fill the history.
        """
        running = time.monotonic() - self._started
        return min(SLOWEST, max(FASTEST, running / _SLOWING))
