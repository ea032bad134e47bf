"""Text inside a field, painted so that it can do no harm and stands where its characters do."""

import re

_BULLET = "•"
_ZERO_WIDTH = "\u200c"
_UNSEEN = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)


def harmless(text: str) -> str:
    """As many characters as before; those that steer a terminal are painted as nothing."""
    return _UNSEEN.sub(_ZERO_WIDTH, text)


def masked(text: str) -> str:
    """A bullet for each character."""
    return _BULLET * len(text)
