"""Images among the files of a replica and on its canvas, through the real service."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from quarterdeck.tui.pictures import UPPER, PictureView
from quarterdeck.tui.screens.picture import PictureScreen
from tests.support.git import commit_files
from tests.support.waiting import eventually
from tests.tui_files.shop import open_shop, running_shop
from tests.tui_shell.frozen import screen_text
from tests.tui_shell.live import Installation


def png() -> bytes:
    """Two colors side by side: every row of it is a half block over another color somewhere."""
    file = io.BytesIO()
    Image.linear_gradient("L").resize((64, 48)).save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A shop with an image, and a file that only claims to be one."""
    work = tmp_path_factory.mktemp("work")
    with running_shop(work, {"README.md": "# A shop\n"}) as made:
        (made.repository / "photo.png").write_bytes(png())
        (made.repository / "broken.png").write_bytes(png()[:60])
        commit_files(made.repository)
        yield made


@pytest.fixture(autouse=True)
def colors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal with colors enough."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.mark.long
async def test_an_image_is_shown_beside_the_finder_and_in_the_whole_window(
    live: Installation,
) -> None:
    await open_shop(live, "alpha")
    async with live.cockpit() as desk:
        await desk.see("○ idle")
        await desk.press("4")
        await desk.see("4 files")
        await desk.write("photo")
        await desk.see("1 file", "photo.png")
        await desk.press("enter")
        await desk.see("PNG, 64 x 48", UPPER * 2)
        await eventually(lambda: desk.focus == "PictureView")
        await desk.press("v")
        await eventually(lambda: isinstance(desk.app.screen, PictureScreen))
        await desk.see("Image: PNG, 64 x 48", UPPER * 2)
        await desk.press("escape")
        await eventually(lambda: desk.focus == "PictureView")
        await desk.press("escape", *["backspace"] * 5, *"broken")
        await desk.see("1 file", "broken.png")
        await desk.press("enter")
        await desk.see("The image is damaged.", "Not a text (60 bytes)", "89 50 4e 47")
        await eventually(lambda: desk.focus == "TextView")
        await desk.press("escape", *["backspace"] * 6, *"readme", "enter")
        await desk.see("# A shop")
        assert not desk.app.screen.query(PictureView)
        assert UPPER * 2 not in screen_text(desk.app)


@pytest.mark.long
async def test_without_pictures_the_reason_and_what_can_be_done_is_said(
    live: Installation,
) -> None:
    await open_shop(live, "alpha")
    async with live.cockpit() as desk:
        desk.app.set_option("images", "off")
        await desk.see("○ idle")
        await desk.press("4")
        await desk.see("4 files")
        await desk.press(*"photo", "enter")
        await desk.see("Images are off", "Not a text", "e opens a copy in $EDITOR")
        await desk.press("v")
        await desk.see("Images are off (cockpit.images")
        assert not isinstance(desk.app.screen, PictureScreen)


async def test_an_image_of_the_canvas_is_shown(live: Installation, tmp_path: Path) -> None:
    (tmp_path / "chart.png").write_bytes(png())
    await open_shop(live, "alpha")
    async with live.cockpit() as desk:
        await desk.see("○ idle")
        await desk.press("5")
        await desk.see("The canvas is empty.")
        await desk.press("u", *str(tmp_path / "chart.png"), "enter")
        await desk.see("Put there as")
        await desk.press("enter")
        await desk.see("PNG, 64 x 48", UPPER * 2)
        await desk.press("v")
        await desk.see("Image: PNG, 64 x 48")
        await desk.press("escape")
        await eventually(lambda: desk.focus == "PictureView")
        await desk.press("escape")
        await eventually(lambda: desk.focus == "ItemList")
        await desk.miss(UPPER * 2)
