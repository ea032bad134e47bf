"""Which texts on a screen are hard to read: by the contrast of their colors."""

from collections.abc import Iterable, Iterator
from typing import Any

from rich.segment import Segment
from textual.app import App
from textual.geometry import Region

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


TEXT, SIGN = 4.5, 3.0
"""The least contrast of text, and of signs and borders, by WCAG 2 AA."""


def pale(app: App[Any], region: Region) -> Iterator[str]:
    """What of a part of the screen has less. Colors of the terminal's own are nobody's to judge."""
    for strip in shown_strips(app)[region.y : region.bottom]:
        for segment in strip.crop(region.x, region.right):
            if segment.text.strip() and (seen := _contrast_of(segment)) < _least(segment.text):
                yield f"{segment.text.strip()}: {seen:.2f}, {segment.style}"


def _least(text: str) -> float:
    return TEXT if any(map(str.isalnum, text)) else SIGN


def _contrast_of(segment: Segment) -> float:
    style = segment.style
    color, behind = (style.color, style.bgcolor) if style else (None, None)
    if color is None or behind is None or color.triplet is None or behind.triplet is None:
        return 21.0
    return contrast(color.triplet, behind.triplet)
