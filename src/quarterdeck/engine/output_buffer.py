"""The retained tail of a terminal's output, addressed by byte offset."""

from quarterdeck.wire.terminals import REPLAY_BYTES

_SLACK = 1 << 17


class OutputBuffer:
    """Keeps at least the last `capacity` bytes. Offsets count from the terminal's first byte."""

    def __init__(self, capacity: int = REPLAY_BYTES) -> None:
        self._capacity = capacity
        self._data = bytearray()
        self.start = 0
        """Offset of the oldest retained byte."""

    @property
    def end(self) -> int:
        """Offset after the newest byte."""
        return self.start + len(self._data)

    def append(self, data: bytes) -> None:
        self._data += data
        if len(self._data) > self._capacity + _SLACK:
            surplus = len(self._data) - self._capacity
            del self._data[:surplus]
            self.start += surplus

    def read(self, offset: int, limit: int | None = None) -> bytes:
        """Return the bytes from a retained offset on."""
        begin = offset - self.start
        return bytes(self._data[begin : None if limit is None else begin + limit])
