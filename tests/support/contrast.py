"""Which texts on a screen are hard to read: by the contrast of their colors."""

from collections.abc import Iterable, Iterator
from typing import Any

from rich.segment import Segment
from textual.app import App

from tests.support.shown import shown_strips


def luminance(color: Iterable[int]) -> float:
    """As the contrast of texts is defined by it."""
    parts = [one / 255 for one in color]
    red, green, blue = [
        one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts
    ]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Iterable[int], other: Iterable[int]) -> float:
    """From 1, the same, to 21, black on white."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def pale(app: App[Any], least: float) -> Iterator[str]:
    """Words whose contrast is less. Colors of the terminal's own are nobody's to judge."""
    for segment in (one for strip in shown_strips(app) for one in strip):
        if any(map(str.isalnum, segment.text)) and _contrast_of(segment) < least:
            yield segment.text.strip()


def _contrast_of(segment: Segment) -> float:
    style = segment.style
    color, behind = (style.color, style.bgcolor) if style else (None, None)
    if color is None or behind is None or color.triplet is None or behind.triplet is None:
        return 21.0
    return contrast(color.triplet, behind.triplet)
