"""What reaches a terminal that shows images: read back as pixels, and compared with the original."""

import fcntl
import os
import re
import struct
import subprocess
import tempfile
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.support.pictured import HEIGHT, WIDTH, PictureTerminal, difference
from tests.support.visible import text_rows
from tests.tui_transcript.conftest import Session

TMUX_QUERY = b"\x1b[>q"
QUERY = b"\x1b[>0q\x1b[16t\x1b[c"
F2, F3, F4, F7, F9 = "\x1bOQ", "\x1bOR", "\x1bOS", "\x1b[18~", "\x1b[20~"
SAME = 12.0
"""Most difference of an image and what is shown of it, by scaling and fewer colors."""


class Viewer(Session):
    """The small app on a terminal that shows images."""

    def __init__(
        self,
        *arguments: str,
        columns: int = 60,
        rows: int = 20,
        pixels: bool = True,
        says: bytes,
        query: bytes = QUERY,
        script: str = "pictures_app.py",
        **variables: str,
    ) -> None:
        self._pixels = pixels
        self._replies = {b"\x1b[5n": b"\x1b[0n", b"\x1b[?2026$p": b"\x1b[?2026;2$y", query: says}
        self._answered = 0
        self.terminal = PictureTerminal(columns, rows)
        super().__init__(script, columns, rows, *arguments, TMUX="", **variables)
        self.screen = self.terminal.screen
        self._stream = self.terminal

    def _set_size(self, columns: int, rows: int) -> None:
        size = (columns * WIDTH, rows * HEIGHT) if self._pixels else (0, 0)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, *size))

    def read(self, seconds: float) -> bytes:
        data = super().read(seconds)
        known = b"|".join(map(re.escape, self._replies))
        for query in re.finditer(known, self.output[self._answered :]):
            os.write(self._fd, self._replies[query[0]])
        ends = [found.end() for found in re.finditer(known, self.output)]
        self._answered = ends[-1] if ends else 0
        return data

    def shown(self, original: Path) -> tuple[int, int, int, int]:
        """Waits for the image; its bounds in cells."""
        image = Image.open(original).convert("RGB")

        def is_shown() -> bool:
            found = self.terminal.picture()
            return found is not None and difference(found[1], image) < SAME

        self.wait(is_shown)
        found = self.terminal.picture()
        assert found is not None
        return found[0]


TERMINALS = {
    "kitty": b"\x1bP>|kitty(0.35.2)\x1b\\\x1b[6;16;8t\x1b[?62;c",
    "ghostty": b"\x1bP>|ghostty 1.1.0\x1b\\\x1b[?62;22c",
    "sixel": b"\x1bP>|foot(1.16.2)\x1b\\\x1b[6;16;8t\x1b[?62;4;22c",
}


@pytest.fixture
def images(tmp_path: Path) -> tuple[Path, Path]:
    """Two images that differ everywhere; the first is wide, with a gradient and sharp edges."""
    first = Image.linear_gradient("L").resize((160, 80))
    wide = Image.merge("RGB", (first, first.transpose(Image.Transpose.ROTATE_180), first))
    wide.paste((255, 0, 0), (20, 10, 60, 40))
    other = Image.new("RGB", (60, 60), (0, 90, 200))
    other.paste((250, 250, 0), (30, 0, 60, 60))
    paths = tmp_path / "wide.png", tmp_path / "other.png"
    for path, image in zip(paths, (wide, other), strict=True):
        image.save(path)
    return paths


@pytest.fixture
def view(images: tuple[Path, Path]) -> Iterator[Callable[..., Viewer]]:
    """Opens the small app; closes it."""
    opened: list[Viewer] = []

    def start(says: bytes, setting: str = "auto", **options: Any) -> Viewer:
        viewer = Viewer(setting, *map(str, images), says=says, **options)
        opened.append(viewer)
        return viewer

    yield start
    for viewer in opened:
        viewer.close()


@pytest.mark.parametrize("terminal", TERMINALS)
def test_an_image_is_shown_covered_uncovered_and_removed(
    view: Callable[..., Viewer], images: tuple[Path, Path], terminal: str
) -> None:
    viewer = view(says=TERMINALS[terminal])
    bounds = viewer.shown(images[0])
    left, top, right, bottom = bounds
    assert (left, right) == (3, 57) and top >= 1 and bottom <= 19
    viewer.wait_text("shown: PNG, 160 x 80")
    viewer.send(F2)
    viewer.wait_text("Question")
    viewer.wait_quiet()
    covered = viewer.terminal.picture()
    assert covered is not None and covered[0] == bounds
    assert covered[1].getpixel(((30 - left) * WIDTH, (10 - top) * HEIGHT)) == (255, 0, 255)
    viewer.send("\x1b")
    viewer.wait(lambda: "Question" not in "".join(text_rows(viewer.screen)))
    assert viewer.shown(images[0]) == bounds
    viewer.send(F4)
    viewer.shown(images[1])
    viewer.send(F3)
    viewer.wait_text("gone")
    viewer.wait_quiet()
    assert viewer.terminal.picture() is None
    assert not viewer.terminal.kitty
    assert "before" in text_rows(viewer.screen)[0]


@pytest.mark.parametrize("terminal", ["kitty", "sixel"])
def test_an_image_survives_another_size_a_redraw_and_a_suspension(
    view: Callable[..., Viewer], images: tuple[Path, Path], terminal: str
) -> None:
    viewer = view(says=TERMINALS[terminal])
    viewer.shown(images[0])
    viewer.resize(40, 16)
    viewer.wait(lambda: bounds_of(viewer)[2] == 37)
    assert viewer.shown(images[0])[0] == 3
    for key, word in ((F7, ""), (F9, "back")):
        # What the terminal has may be lost: a program that had it may have cleared everything.
        viewer.terminal.kitty.clear()
        viewer.screen.reset()
        viewer.send(key)
        viewer.wait_text(word)
        viewer.shown(images[0])


def bounds_of(viewer: Viewer) -> tuple[int, int, int, int]:
    found = viewer.terminal.picture()
    return (0, 0, 0, 0) if found is None else found[0]


@pytest.mark.parametrize(
    ("says", "setting", "pixels", "variables"),
    [
        (b"\x1bP>|WezTerm 20240203\x1b\\\x1b[?65;6;18;22c", "auto", True, {}),
        (b"\x1b[?64;1;2c", "auto", True, {}),
        (TERMINALS["kitty"], "blocks", True, {}),
        # Four is its class, not an attribute.
        (b"\x1b[?4;1c", "auto", True, {}),
        (b"\x1b[?62;4c", "auto", False, {}),
        (TERMINALS["kitty"], "auto", True, {"QD_FRAMES": "off"}),
    ],
    ids=["unknown", "no name", "setting", "class", "no size", "no differ"],
)
def test_elsewhere_an_image_is_half_blocks(
    view: Callable[..., Viewer], says: bytes, setting: str, pixels: bool, variables: dict[str, str]
) -> None:
    viewer = view(says, setting, pixels=pixels, **variables)
    viewer.wait_text("shown: PNG")
    viewer.wait_text("\u2580" * 3)
    assert viewer.terminal.picture() is None
    assert b"\x1b_G" not in viewer.output and b'q"1;1' not in viewer.output


def test_tmux_passes_an_image_to_the_terminal_around_it(
    images: tuple[Path, Path], require_tool: Callable[[str], str]
) -> None:
    tmux = require_tool("tmux")
    with tempfile.TemporaryDirectory(prefix="qd-") as directory:
        viewer = Viewer(
            directory,
            "auto",
            *map(str, images),
            says=b"\x1bP>|kitty(0.35.2)\x1b\\",
            query=TMUX_QUERY,
            script="pictures_in_tmux.py",
        )
        try:
            left, _, right, _ = viewer.shown(images[0])
            assert (left, right) == (3, 57)
            viewer.send(F2)
            viewer.wait_text("Question")
            viewer.send("\x1b")
            viewer.shown(images[0])
            viewer.send(F3)
            viewer.wait_text("gone")
            viewer.wait(lambda: not viewer.terminal.kitty)
            assert viewer.terminal.picture() is None
        finally:
            viewer.close()
            subprocess.run([tmux, "-S", f"{directory}/tmux", "kill-server"], check=False)


def test_off_says_so_and_the_terminal_is_asked_once(view: Callable[..., Viewer]) -> None:
    viewer = view(TERMINALS["kitty"], "off")
    viewer.wait_text('shown: Images are off (cockpit.images = "off").')
    assert viewer.output.count(QUERY) == 1
    assert viewer.terminal.picture() is None
