"""Where a text is found in the rows of a page."""

from collections.abc import Callable

Found = list[tuple[int, int]]


def spans_in(text: str, wanted: str) -> Found:
    """The places of a text in a row, as characters from and up to.

    Small letters find large ones too; a large letter finds only itself.
    """
    if not wanted:
        return []
    if wanted == wanted.lower():
        lowered = text.lower()
        # Some letters are longer in small: then their places would be others.
        text = lowered if len(lowered) == len(text) else text
    places: Found = []
    at = text.find(wanted)
    while at >= 0:
        places.append((at, at + len(wanted)))
        at = text.find(wanted, at + len(wanted))
    return places


def next_row(
    text_of: Callable[[int], str], count: int, wanted: str, start: int, step: int
) -> int | None:
    """The nearest row with the text, from `start` on in a direction and around the end."""
    for number in range(count):
        row = (start + number * step) % count
        if spans_in(text_of(row), wanted):
            return row
    return None
