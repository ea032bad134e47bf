"""Text that arrives in pieces."""

from quarterdeck.transcript.clean import clean, is_plain


class Flow:
    """Pieces of one text, joined and cleaned only when somebody reads it.

    A control sequence may be cut in two by a piece's end, so the raw text is what is kept; only the
    lines that came since the last reading are cleaned again.
    """

    __slots__ = ("_clean", "_done", "_pieces", "_plain", "_raw", "length")

    def __init__(self, piece: str = "") -> None:
        self._raw = ""
        self._pieces = [piece] if piece else []
        self._plain = is_plain(piece)
        self._clean = ""
        self._done = 0
        self.length = len(piece)
        """Characters so far, before cleaning; cheap."""

    def add(self, piece: str) -> None:
        """The next piece."""
        self._pieces.append(piece)
        self.length += len(piece)
        self._plain = self._plain and is_plain(piece)

    def put_before(self, older: "Flow") -> None:
        """Another flow's text comes before this one's."""
        self._raw = older.raw + self.raw
        self._plain = older._plain and self._plain
        self._clean = ""
        self._done = 0
        self.length = len(self._raw)

    @property
    def raw(self) -> str:
        """The text as it came."""
        if self._pieces:
            self._raw += "".join(self._pieces)
            self._pieces.clear()
        return self._raw

    @property
    def text(self) -> str:
        """The text, safe to show."""
        raw = self.raw
        if self._plain:
            return raw
        cut = raw.rfind("\n") + 1
        if cut > self._done:
            self._clean += clean(raw[self._done : cut])
            self._done = cut
        return self._clean + clean(raw[cut:])
