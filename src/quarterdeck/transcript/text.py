"""Text of a transcript: cleaned of control sequences, and joined while it streams.

Makes text from agents harmless to show.

Output of an agent or a program must never reach the terminal as a control sequence, change the
reading direction, or stack marks on one cell. Every function here works line by line (no rule
looks across a newline), so text that arrives in pieces can be cleaned again from its last line.
"""

import re
import unicodedata
from collections.abc import Callable

_MAX_MARKS = 4
"""Zero-width marks kept on one character: real scripts use up to three."""

MOST_JOINED = 10
"""Most characters that follow the first in a cell: as many as the longest emoji in use has."""

_SUSPECT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*+[ -/]*+[@-~]"  # CSI
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]*+(?:\x07|\x1b\\\\|\x9c)"  # strings
    "|\x1b[ -/]*[0-Z\\\\^-~]?"  # anything else that escapes
)
_REMOVED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
_HOSTILE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
UNNAMED = "(unnamed)"
LONGEST_NAME = 1_000
"""Characters of a name that are looked at: the service's own limits are below that."""
_JOINERS = re.compile("[\u200c\u200d\ufe00-\ufe0f]{2,}")
_LEADING_JOINERS = re.compile("^[\u200c\u200d\ufe00-\ufe0f]+", re.MULTILINE)
_FOREIGN = re.compile("[^\x00-\x7f]{2,}")
_MARKS = frozenset({"Mn", "Me", "Mc", "Cf"})
_ENDS_OF_SYLLABLES = re.compile("[\u1160-\u11ff\ud7b0-\ud7ff\U0001f3fb-\U0001f3ff]")
"""Letters and signs by category, but drawn into the cell of the one before."""


def clean(text: str) -> str:
    """Return prose without control sequences; newlines and tabs stay, a lone return is a newline."""
    if not _SUSPECT.search(text):
        return thin_marks(text)
    text = text.replace("\r\n", "\n")
    if text.endswith("\r"):
        text = text[:-1]
    return _strip(text.replace("\r", "\n"))


def clean_output(text: str) -> str:
    """Return a program's output like `clean`, but a carriage return overwrites its line."""
    if not _SUSPECT.search(text):
        return thin_marks(text)
    if "\r" in text:
        text = "\n".join(_overwritten(line) for line in text.split("\n"))
    return _strip(text)


def one_line(text: str) -> str:
    """Return a title or a name: cleaned, all white space one blank."""
    return " ".join(clean(text).split())


def name_line(text: str) -> str:
    """Return the beginning of a name on one line, and a word in place of one of which nothing can be shown."""
    return one_line(text[:LONGEST_NAME]) or UNNAMED


def replace_hostile(text: str, with_width: Callable[[str], int]) -> str:
    """Return the text of a screen, in which nothing is left that could change the screen.

    The last resort, for text that nobody has cleaned: it keeps its width.
    """
    return _HOSTILE.sub(lambda match: "\ufffd" * with_width(match[0]), text)


def money(amount: float, currency: str) -> str:
    """Return a formatted amount: `$0.42`, `$0.0007`, `1.20 EUR`."""
    digits = 2 if amount >= 0.01 else 4
    return (
        f"${amount:.{digits}f}"
        if currency == "USD"
        else f"{amount:.{digits}f} {one_line(currency)}"
    )


def is_plain(text: str) -> bool:
    """Return whether `clean` leaves any text made of such pieces unchanged."""
    return text.isascii() and not _SUSPECT.search(text)


def _overwritten(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]


def _strip(text: str) -> str:
    text = _SEQUENCE.sub("", text)
    text = text.replace("\u2028", "\n").replace("\u2029", "\n")
    text = _REMOVED.sub("", text)
    text = re.sub("[\ud800-\udfff]", "\ufffd", text)
    text = _JOINERS.sub(lambda match: match[0][0], text)
    return thin_marks(_LEADING_JOINERS.sub("", text))


def thin_marks(text: str, replace: Callable[[str], str] = lambda mark: "") -> str:
    """Return text with at most four zero-width marks in a row; more slow terminals down.

    Args:
        replace: returns what is put in the place of each further mark.
    """
    return text if text.isascii() else _FOREIGN.sub(lambda run: _thin(run[0], replace), text)


def _thin(run: str, replace: Callable[[str], str]) -> str:
    if run.isalnum() and not _ENDS_OF_SYLLABLES.search(run):
        return run
    kept: list[str] = []
    marks = 0
    for character in run:
        marks = marks + 1 if _has_no_width(character) else 0
        kept.append(character if marks <= _MAX_MARKS else replace(character))
    return "".join(kept)


def _has_no_width(character: str) -> bool:
    # Includes joiners and variation selectors, which have no meaning in such numbers.
    return unicodedata.category(character) in _MARKS or bool(_ENDS_OF_SYLLABLES.match(character))


class Flow:
    """Pieces of one text, joined and cleaned only when it is read.

    A control sequence may be split between two pieces, so the raw text is kept; only the lines since
    the last reading are cleaned again.
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
        """Add the next piece."""
        self._pieces.append(piece)
        self.length += len(piece)
        self._plain = self._plain and is_plain(piece)

    def put_before(self, older: "Flow") -> None:
        """Put another flow's text before this one's."""
        self._raw = older.raw + self.raw
        self._plain = older._plain and self._plain
        self._clean = ""
        self._done = 0
        self.length = len(self._raw)

    @property
    def raw(self) -> str:
        """The text as received."""
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
