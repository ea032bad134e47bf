"""What a running command printed, kept short, and when to show it again."""

import time

KEPT = 64 << 10
"""Bytes of output that stay, counted from the end."""
SHOWN_LIVE = 16 << 10
"""Bytes shown while it runs: each showing repeats what came before."""
FASTEST = 0.05
SLOWEST = 2.0
_SLOWING = 200.0


class Output:
    """The end of a command's output. Not decoded until it is shown: a cut may split a character."""

    def __init__(self) -> None:
        self._tail = bytearray()
        self._started = time.monotonic()
        self.total = 0

    def add(self, chunk: bytes) -> None:
        """Takes more output."""
        self.total += len(chunk)
        self._tail += chunk
        if len(self._tail) > 2 * KEPT:
            del self._tail[:-KEPT]

    @property
    def truncated(self) -> bool:
        """Whether more was printed than is kept."""
        return self.total > KEPT

    def text(self, limit: int = KEPT) -> str:
        """The last `limit` bytes as text, after a line that says what is left out."""
        end = bytes(self._tail[-limit:])
        left_out = self.total - len(end)
        if not left_out:
            return end.decode(errors="replace")
        whole = end.lstrip(bytes(range(0x80, 0xC0)))
        return f"[{left_out:,} bytes of earlier output left out]\n" + whole.decode(errors="replace")

    def pause(self) -> float:
        """Seconds to the next showing: 20 a second at first, fewer the longer it runs.

        A showing holds all that is visible, so a long build would otherwise fill the history.
        """
        running = time.monotonic() - self._started
        return min(SLOWEST, max(FASTEST, running / _SLOWING))
