"""How much a JSON text holds, counted before it is read.

Short values need far more memory than their text: 64 MiB of `[],[],` become more than a gigabyte.
"""

import re

VALUES_LIMIT = 500_000
"""Most strings, commas and brackets of a text from another program."""

_VALUES = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[,\[{]', re.DOTALL)


def has_too_many_values(text: bytes) -> bool:
    """Return whether a JSON text has more than `VALUES_LIMIT` values."""
    if len(text) <= VALUES_LIMIT:
        return False
    return any(number == VALUES_LIMIT for number, _ in enumerate(_VALUES.finditer(text)))
