"""What a cockpit writes to the terminal around it: its sequences one by one, and its screen."""

import re
import unicodedata
from collections.abc import Iterator

SEQUENCE = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # CSI
    rb"|\][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC
    rb"|[P^_X](?:[^\x1b]|\x1b[^\\])*\x1b\\"  # DCS, PM, APC, SOS
    rb"|[ -/]*[0-~])"
)
DRAWING = frozenset(b"mHABCDGdJKXPLM@STr")
"""Ends of sequences that move, erase, scroll and color, and do nothing else."""
OWN = re.compile(rb"\x1b\[(?:\?(?:25|2026)[hl]|5n)")
"""The cursor shown or not, a frame held back until it is whole, and a question for the line's speed."""
HIDDEN = frozenset(
    map(chr, [*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)])
)


def sequences(raw: bytes) -> Iterator[bytes]:
    """The control sequences in what was written."""
    for found in SEQUENCE.finditer(raw):
        yield found[0]


def printed(raw: bytes) -> str:
    """What is left without them."""
    return SEQUENCE.sub(b"", raw).decode()


def odd_sequences(raw: bytes) -> list[bytes]:
    """Those that do more than paint. Bytes of no sequence that control are among them."""
    found = [
        one
        for one in sequences(raw)
        if not (one[1:2] == b"[" and one[-1] in DRAWING and one[2:3] not in b"?><=")
        and not OWN.fullmatch(one)
    ]
    found += [c.encode() for c in printed(raw) if _controls(c)]
    return found


def _controls(character: str) -> bool:
    if character in "\r\n\b":
        return False
    return character in HIDDEN or unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
