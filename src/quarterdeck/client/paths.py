"""Paths of requests."""

from urllib.parse import quote


def segment(value: object) -> str:
    """Return an id or a name as one segment of a path, whatever it contains.

    Dots alone would lead to another path, so they are quoted too.
    """
    text = quote(str(value), safe="")
    return text.replace(".", "%2E") if text in (".", "..") else text
