"""Several hundred texts that would do harm to a terminal that they reached, and how to tell."""

import re
from collections.abc import Iterator

NUMBER = "31337"
"""In every sequence of a payload, and in none of the program's own."""

_STRINGS = [
    f"{NUMBER};c;c3RvbGVu",
    f"0;{NUMBER}",
    f"8;;http://{NUMBER}",
    f"52;{NUMBER};?",
    f"+q{NUMBER}",
]
SEQUENCES = [
    *(f"\x1b[{NUMBER}{final}" for final in "ABCDHJKLMPSTX@bcdfghlmnpqrstu`~"),
    *(f"\x1b[{mark}{NUMBER}{final}" for mark in "?>=!<" for final in "hlcnmpqu"),
    *(f"\x1b[{NUMBER}{between}{final}" for between in " $\"'*" for final in "qtrxz|}"),
    *(f"\x9b{NUMBER}{final}" for final in "JHmnc"),
    *(f"{start}{text}{end}" for start in ("\x1b]", "\x9d", "\x1bP", "\x90", "\x1b_", "\x9f", "\x1b^", "\x9e", "\x1bX", "\x98") for text in _STRINGS for end in ("\x07", "\x1b\\", "\x9c", "")),
    *(f"\x1b{final}{NUMBER}" for final in "cDEHMNOZ78=>()*+#%lmno|}~"),
    *(f"{control}{NUMBER}" for control in map(chr, (*range(9), *range(11, 32), *range(127, 160)))),
    *(f"{control}{NUMBER}" for control in "\u061c\u200b\u200e\u200f\u2028\u2029\u202a\u202d\u202e\u2060\u2066\u2069\ufeff\ufff9\U000e0041\u00ad\u3164"),
    "a" + "\u0301" * 64,
    "\U0001f44d" + "\U0001f3fb\u0300" * 40,
    "\U0001f468" + "\u200d\U0001f468\u0300" * 60,
    "\u1100" + "\u1161" * 64,
    f"\x1b[\x00{NUMBER}J",
    f"\x1b\x1b[{NUMBER}J",
    f"\x1b[3\x1b[{NUMBER}J",
    f"\x1b]\x1b[{NUMBER}J",
    f"\x1b[\n{NUMBER}J",
]  # fmt: skip


def payloads() -> list[str]:
    """Return each sequence inside a word, so that it can be seen that the rest is shown."""
    return [f"go{number}{text}on" for number, text in enumerate(SEQUENCES)]


_ALLOWED_CONTROLS = "\n\t"
_FORMAT = (
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff"
)
_NEVER = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_FORMAT}]")
_MARKS = re.compile("[\u0300-\u036f]{11,}|(?:[\U0001f3fb-\U0001f3ff][\u0300-\u036f]){11,}")
_OWN = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1bP[^\x1b]*\x1b\\|\x1b[=>78()][0B]?"
)

_LINK = re.compile(r"\x1b\]8;id=[0-9a-f]+;http://a/[!-~]*\x1b\\")


def harm_in_text(text: str) -> str | None:
    """Return the first harmful part of what a command has printed."""
    found = _NEVER.search(text) or _MARKS.search(text)
    return found and repr(text[max(0, found.start() - 20) : found.end() + 20])


def harm_on_screen(raw: bytes) -> str | None:
    """Return the first harmful part of what a program wrote to a terminal that it draws on."""
    text = raw.decode(errors="surrogateescape")
    for own in _OWN.finditer(text):
        # A link of the cockpit's own may lead where a payload names it.
        if NUMBER in own[0] and not _LINK.match(own[0]):
            return repr(own[0])
    rest = _OWN.sub("", text).replace("\r", "").replace("\x0f", "")
    return harm_in_text(rest)


def chunks(texts: list[str], size: int) -> Iterator[list[str]]:
    """Yield the texts in groups."""
    for start in range(0, len(texts), size):
        yield texts[start : start + size]
