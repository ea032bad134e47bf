"""Addresses in texts. The process that draws terminals imports this, and nothing that is large."""

import re

ADDRESS = re.compile(r"(?:https?|ftp|file)://[^\s\x00]+|mailto:[^\s\x00]+@[^\s\x00]+", re.I)
_PAIRS = {")": "(", "]": "["}
_TRAILING = ".,;:!?'\"*"


def cut_address(word: str) -> str:
    """Return the address in a word, without trailing punctuation."""
    match = ADDRESS.search(word)
    address = match[0] if match is not None else ""
    unpaired = {last: address.count(last) - address.count(_PAIRS[last]) for last in _PAIRS}
    end = len(address)
    while end and (address[end - 1] in _TRAILING or unpaired.get(address[end - 1], 0) > 0):
        end -= 1
        if address[end] in unpaired:
            unpaired[address[end]] -= 1
    return address[:end]
