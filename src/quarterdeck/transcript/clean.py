"""Makes text from agents harmless to show.

What an agent or a program prints must never reach the terminal as a control sequence, nor turn the
reading direction, nor pile marks upon one cell. Every function here works line by line (no rule
looks across a newline), so text that arrives in pieces can be cleaned again from its last line.
"""

import re
import unicodedata

_MAX_MARKS = 4
"""What has no width of its own and is kept on one character: real scripts use up to three."""

_SUSPECT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)"  # strings
    "|\x1b[ -/]*[0-Z\\\\^-~]?"  # anything else that escapes
)
_GONE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
_JOINERS = re.compile("[\u200c\u200d\ufe00-\ufe0f]{2,}")
_LEADING_JOINERS = re.compile("^[\u200c\u200d\ufe00-\ufe0f]+", re.MULTILINE)
_FOREIGN = re.compile("[^\x00-\x7f]{2,}")
_MARKS = frozenset({"Mn", "Me", "Mc", "Cf"})
_ENDS_OF_SYLLABLES = re.compile("[\u1160-\u11ff\ud7b0-\ud7ff]")
"""Letters by their kind, but drawn into the cell of the one before."""


def clean(text: str) -> str:
    """Prose: control sequences removed, newlines and tabs kept, a lone carriage return a newline."""
    if not _SUSPECT.search(text):
        return _thin_marks(text)
    text = text.replace("\r\n", "\n")
    if text.endswith("\r"):
        text = text[:-1]
    return _strip(text.replace("\r", "\n"))


def clean_output(text: str) -> str:
    """Output of a program: like `clean`, but a carriage return overwrites its line."""
    if not _SUSPECT.search(text):
        return _thin_marks(text)
    if "\r" in text:
        text = "\n".join(_overwritten(line) for line in text.split("\n"))
    return _strip(text)


def one_line(text: str) -> str:
    """A title or a name: cleaned, all white space one blank."""
    return " ".join(clean(text).split())


def is_plain(text: str) -> bool:
    """True when `clean` of any text made of such pieces gives the text back."""
    return text.isascii() and not _SUSPECT.search(text)


def _overwritten(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]


def _strip(text: str) -> str:
    text = _SEQUENCE.sub("", text)
    text = text.replace("\u2028", "\n").replace("\u2029", "\n")
    text = _GONE.sub("", text)
    text = re.sub("[\ud800-\udfff]", "\ufffd", text)
    text = _JOINERS.sub(lambda found: found[0][0], text)
    return _thin_marks(_LEADING_JOINERS.sub("", text))


def _thin_marks(text: str) -> str:
    return text if text.isascii() else _FOREIGN.sub(_thin, text)


def _thin(found: re.Match[str]) -> str:
    run = found[0]
    if run.isalnum() and not _ENDS_OF_SYLLABLES.search(run):
        return run
    kept: list[str] = []
    marks = 0
    for character in run:
        marks = marks + 1 if _has_no_width(character) else 0
        if marks <= _MAX_MARKS:
            kept.append(character)
    return run if len(kept) == len(run) else "".join(kept)


def _has_no_width(character: str) -> bool:
    # Joiners and variation selectors among them: they hold nothing together in such numbers.
    return unicodedata.category(character) in _MARKS or bool(_ENDS_OF_SYLLABLES.match(character))
