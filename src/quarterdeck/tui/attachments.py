"""Files that go with a message, wherever it is written: asked for by path, named while they wait."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from textual.app import App
from textual.widget import Widget

from quarterdeck.store.attaching import NotReadableError, home_path, image_of, read_file
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.panes.chat_ask import AskField, AskScreen, WrongFieldError
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import hold_keys
from quarterdeck.wire.messages import Image


@dataclass(frozen=True)
class Attachment:
    """A file that goes with a message: an image in it, or an upload that waits."""

    name: str
    image: Image | None = None
    upload_id: str | None = None


def images_among(attachments: Sequence[Attachment]) -> tuple[Image, ...]:
    """Those that go in the message itself."""
    return tuple(one.image for one in attachments if one.image is not None)


def attached_words(which: str, attachments: Sequence[Attachment]) -> str:
    """Names what goes with a message; empty for nothing."""
    if not attachments:
        return ""
    names = ", ".join(one_line(one.name) for one in attachments)
    return f"with the {which} message: {names} " + keyed("({composer.detach} takes them off)")


@dataclass(frozen=True)
class FileRead:
    """A file of this machine; `image` is None when it is none that messages take."""

    path: Path
    content: bytes
    image: Image | None


async def ask_for_file(
    asker: Widget, title: str, take: Callable[[FileRead], Awaitable[None]]
) -> None:
    """Asks for a path until there is a file that is taken. For a worker of the asker.

    `take` raises `WrongFieldError`, or the client's errors: they are said beside the path.
    """

    async def read(values: Mapping[str, str]) -> None:
        path = home_path(values["path"])
        try:
            content = await asyncio.to_thread(read_file, path)
        except NotReadableError as error:
            raise WrongFieldError("path", str(error)) from error
        await take(FileRead(path, content, image_of(content)))

    field = AskField("path", "File on this machine", hint="~/picture.png, up to 5 MB")
    hold_keys(asker)
    app = cast("App[object]", asker.app)
    await app.push_screen_wait(AskScreen(title, [field], read, "attaches"))
