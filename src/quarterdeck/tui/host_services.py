"""What the cockpit uses of its machine: client, files, terminals."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

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

if TYPE_CHECKING:
    from quarterdeck.client.client import Client
    from quarterdeck.store.connection_monitor import Revive


class NotSupportedError(Exception):
    """The operation is not possible; the text says why and what to do."""


@dataclass(frozen=True)
class ServiceChoice:
    """A service that the cockpit can connect to.

    `name` tells it from others, `git_variables` are those with which `git-remote-qd` finds it.
    """

    client: "Callable[[], Client]"
    endpoint: str
    revive: "Revive | None"
    name: str = ""
    git_variables: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class KnownService:
    """A named service; `shown` is its displayed address, `beside` whether it is shown beside the one in use."""

    name: str
    shown: str
    beside: bool = False


class Surroundings(Protocol):
    """Methods raise `NotSupportedError`."""

    @property
    def current(self) -> str:
        """The name of the service that the cockpit is on."""
        ...

    @property
    def file(self) -> Path:
        """The configuration file."""
        ...

    @property
    def own_machine(self) -> bool:
        """Whether the service runs here and is ours: then agents can be installed for it."""
        ...

    def known(self) -> list[KnownService]:
        """Return all services that can be connected to."""
        ...

    async def connect(self, name: str) -> ServiceChoice:
        """Connect to another service, from now on the current one. May run a key's command."""
        ...

    def beside(self) -> list[ServiceChoice]:
        """Return the services to show beside the current one. Their keys are found when they are run."""
        ...

    def show_beside(self, name: str, shown: bool) -> None:
        """Write whether a service is shown beside others into the configuration file."""
        ...

    def add(self, name: str, address: str, key: str | None) -> None:
        """Add a service under an unused name."""
        ...

    def keep(self, name: str, value: str | bool) -> None:
        """Write a setting of the cockpit into the configuration file."""
        ...

    async def make_key(self, name: str) -> str:
        """Create an API key for the user, and return its text."""
        ...

    async def install(self, agent: str, tell: Callable[[str], None]) -> None:
        """Install an agent on this machine, reporting each line that is printed meanwhile."""
        ...


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
