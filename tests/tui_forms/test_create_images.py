"""Images that go with the first message of a replica."""

import base64
import io
from pathlib import Path

import pytest
from PIL import Image as Pillow
from textual import events

from quarterdeck.client.errors import InvalidRequestError, PayloadTooLargeError
from quarterdeck.store.creation import CreationRequest
from quarterdeck.tui.forms.create_fields import MessageField, check_message, place_error
from tests.support.waiting import eventually
from tests.tui_shell.conftest import fixed_clock_zone as fixed_clock_zone
from tests.tui_shell.conftest import frozen as frozen
from tests.tui_shell.conftest import installation as installation
from tests.tui_shell.conftest import live as live
from tests.tui_shell.frozen import FrozenCockpit, screen_text
from tests.tui_shell.live import Desk, Installation


def image(format: str) -> bytes:
    file = io.BytesIO()
    Pillow.new("RGB", (8, 8), (200, 30, 30)).save(file, format)
    return file.getvalue()


async def attach(desk: Desk, path: Path) -> None:
    await desk.press("ctrl+o")
    await desk.see("Attach an image")
    await desk.write(str(path))
    await desk.press("enter")


def test_a_refusal_of_images_stands_beside_the_message() -> None:
    for error in (
        InvalidRequestError("They cannot be used.", status=400, details="images: at most 20"),
        PayloadTooLargeError(
            "One is too large.", status=413, details="images.3.source.data: at most 5 bytes"
        ),
    ):
        placed = place_error(error, CreationRequest(repository_url="/work/shop"))
        assert placed.field == "message"
        assert "at most" in placed.text
    wrong = check_message("", 1)
    assert wrong is not None and wrong.field == "message"
    assert check_message("", 0) is None
    assert check_message("look", 1) is None


@pytest.mark.long
async def test_images_go_with_the_first_message(live: Installation, tmp_path: Path) -> None:
    one, two, text = tmp_path / "one.png", tmp_path / "two.jpg", tmp_path / "text.txt"
    one.write_bytes(image("PNG"))
    two.write_bytes(image("JPEG"))
    text.write_text("no image")
    await live.create("taken")
    async with live.cockpit() as desk:
        await desk.see("taken")
        await desk.press("n")
        await desk.see("New replica")
        await attach(desk, tmp_path / "nothing")
        await desk.see("Cannot be read: No such file or directory.")
        await desk.press("ctrl+u")
        await desk.write(str(text))
        await desk.press("enter")
        await desk.see("Not a PNG, JPEG, GIF or WebP image")
        await desk.press("escape")
        await desk.miss("Attach an image")

        await attach(desk, one)
        await desk.see("with the first message: one.png")
        await desk.press("ctrl+s")
        await desk.see("Images need a message")
        await attach(desk, two)
        await desk.see("with the first message: one.png, two.jpg")
        await desk.press("escape")
        await desk.miss("New replica")
        await desk.press("n")
        await desk.see("New replica", "with the first message: one.png, two.jpg")
        await desk.write("what is there?")
        await desk.tab_to("name")
        await desk.write("taken")
        await desk.press("ctrl+s")
        await desk.see("Choose another one", "with the first message: one.png, two.jpg")
        await desk.press("ctrl+u")
        await desk.write("other")
        await desk.press("ctrl+s")
        await desk.miss("New replica")
        made = desk.replica("other")
        await eventually(lambda: made.status == "active" and not made.works, "the end of the turn")
        await desk.press("escape", "n")
        await desk.see("New replica")
        assert "with the first message" not in desk.text
    async with live.client() as client:
        page = await client.history.page(made.id)
    sent = next(event for event in page.events if event.type == "user-message")
    assert [base64.b64decode(each["source"]["data"]) for each in sent.payload["images"]] == [
        one.read_bytes(),
        two.read_bytes(),
    ]


@pytest.mark.long
async def test_images_are_taken_off_again_and_the_help_tells_how(
    live: Installation, tmp_path: Path
) -> None:
    one = tmp_path / "one.png"
    one.write_bytes(image("PNG"))
    async with live.cockpit() as desk:
        await desk.see("online")
        await desk.press("n")
        await desk.see("New replica")
        await attach(desk, one)
        await desk.see("one.png (alt+d removes)")
        await desk.press("alt+d")
        await desk.miss("with the first message")
        await desk.press("f1")
        await desk.see("New replica form", "Attach an image to the first message", "ctrl+o")


async def test_the_pasted_path_of_an_image_goes_with_the_first_message(
    frozen: FrozenCockpit, tmp_path: Path
) -> None:
    picture, text = tmp_path / "shot.png", tmp_path / "text.png"
    picture.write_bytes(image("PNG"))
    text.write_text("no image")
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.press("n")
        await eventually(lambda: isinstance(frozen.focused, MessageField))
        frozen.post_message(events.Paste(str(picture)))
        await eventually(lambda: "with the first message: shot.png" in screen_text(frozen))
        message = frozen.screen.query_one(MessageField)
        assert message.text == ""
        frozen.post_message(events.Paste(str(text)))
        await eventually(lambda: message.text == str(text))
