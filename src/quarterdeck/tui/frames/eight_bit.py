"""Colors for terminals that have 256 of them.

Rich rounds each channel into the color cube, whose darkest step above black is 95 of 255: a dark
bluish gray becomes navy. The ramp of grays beside the cube has finer steps, so the nearer one of
the two is taken. The first sixteen are not: they are the user's.
"""

from bisect import bisect
from collections.abc import Sequence

from rich.color import Color, ColorSystem, ColorType

_CUBE = (0, 95, 135, 175, 215, 255)
_GRAYS = range(8, 239, 10)
_FIRST_OF_CUBE, _FIRST_GRAY = 16, 232


def shown_in(color: Color, system: ColorSystem) -> Color:
    """The color that a terminal of a color system shows in a color's place."""
    if system is ColorSystem.EIGHT_BIT and color.triplet is not None:
        return Color(color.name, ColorType.EIGHT_BIT, number=nearest(*color.triplet))
    return color.downgrade(system)


def nearest(red: int, green: int, blue: int) -> int:
    """The number, 16 to 255, of the color that is nearest to one of 8 bits a channel."""
    steps = [_nearest_step(_CUBE, channel) for channel in (red, green, blue)]
    gray = _nearest_step(_GRAYS, (red + green + blue) / 3)
    of_cube = _distance((red, green, blue), [_CUBE[step] for step in steps])
    if _distance((red, green, blue), [_GRAYS[gray]] * 3) < of_cube:
        return _FIRST_GRAY + gray
    return _FIRST_OF_CUBE + 36 * steps[0] + 6 * steps[1] + steps[2]


def _nearest_step(steps: Sequence[int], channel: float) -> int:
    above = bisect(steps, channel)
    sides = range(max(above - 1, 0), min(above + 1, len(steps)))
    return min(sides, key=lambda step: abs(steps[step] - channel))


def _distance(one: Sequence[int], other: Sequence[int]) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))
