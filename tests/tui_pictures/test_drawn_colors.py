"""Pictures of a terminal show its sixteen colors as a person would see them."""

import pyte

from tests.support.pictures import BACKGROUND, NAMED, cells


def test_muted_text_is_no_black_on_black() -> None:
    screen = pyte.Screen(4, 1)
    pyte.Stream(screen).feed("\x1b[90mx\x1b[30my\x1b[91mz")
    muted, black, red, _ = cells(screen)[0]
    assert muted.foreground not in (black.foreground, BACKGROUND)
    assert red.foreground == NAMED["red"]
