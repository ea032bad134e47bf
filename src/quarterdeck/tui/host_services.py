"""What the cockpit uses of its machine: client and files."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from textual import events, work
from textual.app import App
from textual.widget import Widget

from quarterdeck.store.drafts import NotReadableError, file_path, image_of, read_file
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import keyed
from quarterdeck.tui.textual_ext.cached_text_area import StyledOnce
from quarterdeck.tui.textual_ext.type_ahead import KeyHold, TakesKeys, hold_keys
from quarterdeck.wire.chats import Image

DROPPED_SECONDS = 1.0
"""Longest that keys wait for the file of a pasted path."""
_IMAGE_PATH = re.compile(r"""\s*['"]?~?/[^\n]*\.(?:png|jpe?g|gif|webp)['"]?\s*""", re.IGNORECASE)


class Attachment(NamedTuple):
    """A file to send with a message: an image in it, or a pending upload."""

    name: str
    image: Image | None = None
    upload_id: str | None = None


def images_among(attachments: Sequence[Attachment]) -> tuple[Image, ...]:
    """Return the images that go in the message itself."""
    return tuple(attachment.image for attachment in attachments if attachment.image is not None)


def attached_words(which: str, attachments: Sequence[Attachment]) -> str:
    """Return the names of the attachments of a message; empty without any."""
    if not attachments:
        return ""
    names = ", ".join(one_line(attachment.name) for attachment in attachments)
    return f"with the {which} message: {names} " + keyed("({composer.detach} removes)")


class FileRead(NamedTuple):
    """A file of this machine; `image` is None when it is not an image that messages accept."""

    path: Path
    content: bytes
    image: Image | None


async def read_dropped(text: str) -> FileRead:
    """Return the file of a typed path, or of one that the terminal inserted for a dropped file.

    Raises:
        NotReadableError: it does not exist, is not a file, or is too large.
    """
    path = await asyncio.to_thread(file_path, text)
    content = await asyncio.to_thread(read_file, path)
    return FileRead(path, content, image_of(content))


async def ask_for_file(
    asker: Widget, title: str, take: Callable[[FileRead], Awaitable[None]]
) -> None:
    """Ask for a path until a file is accepted. For a worker of the caller.

    `take` raises `WrongFieldError`, or the client's errors: they are shown next to the path.
    """
    from quarterdeck.tui.kit.dialogs import AskField, AskScreen, WrongFieldError

    async def read(values: Mapping[str, str]) -> None:
        try:
            file = await read_dropped(values["path"])
        except NotReadableError as error:
            raise WrongFieldError("path", str(error)) from error
        await take(file)

    field = AskField("path", "File on this machine", hint="~/picture.png, up to 5 MB")
    app = cast("App[object]", asker.app)
    await app.push_screen_wait(AskScreen(title, [field], read, "attach"))


class TakesImages(StyledOnce, TakesKeys):
    """A text area that attaches the image of a pasted path, as terminals insert for a dropped file."""

    take_image: Callable[[FileRead], Awaitable[bool]] | None = None
    """Attaches it; False where the path is text."""

    def take_paste(self, event: events.Paste) -> bool:
        """Part of `TakesKeys`: keys typed after the path wait for its file."""
        if self.take_image is None or not _IMAGE_PATH.fullmatch(event.text):
            return False
        self._read_pasted(event, hold_keys(self, "Reading the image"))
        return True

    @work(group="image")
    async def _read_pasted(self, event: events.Paste, hold: KeyHold) -> None:
        with hold:
            if not await self._take(event.text.strip()):
                # Through the queue: what was typed before the paste comes before it.
                self.call_later(self._on_paste, event)

    async def _take(self, path: str) -> bool:
        try:
            async with asyncio.timeout(DROPPED_SECONDS):
                file = await read_dropped(path)
        except (NotReadableError, TimeoutError):
            return False
        return (
            file.image is not None and self.take_image is not None and await self.take_image(file)
        )
