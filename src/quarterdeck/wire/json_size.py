"""How much a JSON text holds, counted before it is read, and how large its numbers are.

Short values need far more memory than their text: 64 MiB of `[],[],` become more than a gigabyte.
Numbers of thousands of digits can be neither counted with nor shown.
"""

import json
import re

VALUES_LIMIT = 500_000
"""Most strings, commas and brackets of a text from another program."""

_VALUES = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[,\[{]', re.DOTALL)


def has_too_many_values(text: bytes | bytearray, limit: int = VALUES_LIMIT) -> bool:
    """Return whether a JSON text has more than `limit` values."""
    if len(text) <= limit:
        return False
    return any(number == limit for number, _ in enumerate(_VALUES.finditer(text)))


_EXACT = 10_000


def values_of(text: bytes) -> int:
    """Return about how many values a JSON text has: few are not told from commas in its texts."""
    about = text.count(b",") + text.count(b"[") + text.count(b"{")
    return about if about <= _EXACT else sum(1 for _ in _VALUES.finditer(text))


LARGEST_NUMBER = 2**63 - 1
_LONG_NUMBER = re.compile(rb"[:,\[\s]-?[0-9]{19}")


def with_bounded_integers(text: bytes) -> bytes:
    """Return a JSON text whose integers have 64 bits: a larger one becomes the largest."""
    if not _LONG_NUMBER.search(text):
        return text
    try:
        return json.dumps(json.loads(text, parse_int=_bounded)).encode()
    except (ValueError, RecursionError):
        return text  # it is refused when it is parsed


def _bounded(digits: str) -> int:
    if len(digits) > len(str(LARGEST_NUMBER)) + 1:
        return -LARGEST_NUMBER if digits.startswith("-") else LARGEST_NUMBER
    return max(-LARGEST_NUMBER, min(int(digits), LARGEST_NUMBER))
