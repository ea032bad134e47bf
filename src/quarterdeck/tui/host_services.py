"""What the cockpit uses of its machine: client, files, terminals."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from textual.app import App
from textual.widget import Widget

from quarterdeck.client.errors import ClientError
from quarterdeck.client.stream_events import ConnectionLost as LineLost
from quarterdeck.client.stream_events import ConnectionRestored as LineRestored
from quarterdeck.client.stream_events import Malformed, TerminalItem, TerminalReceived
from quarterdeck.store.drafts import NotReadableError, home_path, image_of, read_file
from quarterdeck.store.terminals import TerminalLink
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import keyed
from quarterdeck.tui.kit.dialogs import AskField, AskScreen, WrongFieldError
from quarterdeck.tui.terminal.host import (
    Exited,
    OutputEvent,
    Replay,
    Resized,
    SourceItem,
    StreamLost,
    StreamRestored,
)
from quarterdeck.wire.chats import Image
from quarterdeck.wire.terminals import (
    TerminalError,
    TerminalEvent,
    TerminalExit,
    TerminalOutput,
    TerminalReplay,
    TerminalResized,
)


@dataclass(frozen=True)
class Attachment:
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


@dataclass(frozen=True)
class FileRead:
    """A file of this machine; `image` is None when it is not an image that messages accept."""

    path: Path
    content: bytes
    image: Image | None


async def ask_for_file(
    asker: Widget, title: str, take: Callable[[FileRead], Awaitable[None]]
) -> None:
    """Ask for a path until a file is accepted. For a worker of the caller.

    `take` raises `WrongFieldError`, or the client's errors: they are shown next to the path.
    """

    async def read(values: Mapping[str, str]) -> None:
        path = home_path(values["path"])
        try:
            content = await asyncio.to_thread(read_file, path)
        except NotReadableError as error:
            raise WrongFieldError("path", str(error)) from error
        await take(FileRead(path, content, image_of(content)))

    field = AskField("path", "File on this machine", hint="~/picture.png, up to 5 MB")
    app = cast("App[object]", asker.app)
    await app.push_screen_wait(AskScreen(title, [field], read, "attaches"))


def _of_event(event: TerminalEvent, data: bytes) -> SourceItem:
    match event:
        case TerminalReplay(cols=cols, rows=rows, reset=reset):
            return Replay(data, cols, rows, reset)
        case TerminalOutput():
            return OutputEvent(data)
        case TerminalResized(cols=cols, rows=rows):
            return Resized(cols, rows)
        case TerminalExit(exit_code=code):
            return Exited(code)
        case TerminalError(message=message):
            return StreamLost(message, 0.0)


def _of_item(item: TerminalItem) -> SourceItem | None:
    match item:
        case TerminalReceived(_, event, data):
            return _of_event(event, data)
        case LineLost(error, retry_in):
            return StreamLost(str(error), retry_in)
        case LineRestored():
            return StreamRestored()
        case Malformed():
            return None


class LinkSource:
    """A `TerminalSource` over one session of the service.

    `on_end` is called once when the session can no longer be shown: its engine ended, or the service
    refuses it.
    """

    def __init__(self, link: TerminalLink, on_end: Callable[[ClientError], object]) -> None:
        self._link = link
        self._on_end = on_end

    async def stream(self) -> AsyncIterator[SourceItem]:
        try:
            async for item in self._link.items():
                shown = _of_item(item)
                if shown is not None:
                    yield shown
        except ClientError as error:
            yield StreamLost(str(error), 0.0)
            self._on_end(error)

    async def send(self, data: str) -> None:
        try:
            await self._link.send(data)
        except ClientError:
            # The stream of a terminal that accepts no keys ends too, and says why.
            return

    async def resize(self, cols: int, rows: int) -> None:
        try:
            await self._link.resize(cols, rows)
        except ClientError:
            # The size is requested again by the view after the connection is back.
            return
