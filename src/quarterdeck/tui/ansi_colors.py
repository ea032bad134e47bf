"""The sixteen colors of terminal programs, where the theme is ours and not the terminal's own.

Textual's have several alike (red is magenta, bright is normal) and a white that is not seen on light.
"""

from rich.terminal_theme import TerminalTheme

Triplet = tuple[int, int, int]


def _triplets(words: str) -> list[Triplet]:
    """Eight colors, in the order of their numbers."""
    return [(int(one[:2], 16), int(one[2:4], 16), int(one[4:], 16)) for one in words.split()]


DARK = TerminalTheme(
    (12, 12, 12),
    (217, 217, 217),
    _triplets("1a1a1a e5484d 3fb950 d9a21b 4c8df6 c061cb 2ab7ca c8c8c0"),
    _triplets("7f7f78 ff7b72 7ee787 f2cc60 82b1ff e39bf0 6fe3ee f6f6ef"),
)
LIGHT = TerminalTheme(
    (247, 247, 247),
    (0, 0, 0),
    _triplets("1a1a1a b3261e 1b7a2b 8a5a00 1f56b5 8a2ba8 00708a 6a6a66"),
    _triplets("565652 d0342c 2f8f20 a06800 2f74d9 b04ac6 1285a3 8c8c86"),
)
