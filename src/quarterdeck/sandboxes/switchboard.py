"""The connections that engines in containers have opened to this service (`wire.dial_home`).

The service's listener offers each one here, where it waits until somebody wants a byte stream into
its container. Only the container that is meant to run is let in: its token, by a digest, is in the
container engine's own record, so that a restarted service knows it too.
"""

import asyncio
import hmac
import secrets
import socket
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256

from quarterdeck.wire.dial_home import Destination
from quarterdeck.wire.git_state import EngineRepository

READ_LIMIT = 1 << 18
"""Bytes a stream buffers before it pauses the sender (at most twice this)."""
MOST_WAITING = 16
"""Connections of one workspace that wait to be taken; a further one ends the oldest."""


def new_token() -> str:
    """Return a random token."""
    return secrets.token_hex(32)


def digest_of(token: str) -> str:
    """Return what may be recorded of a token."""
    return sha256(token.encode()).hexdigest()


@dataclass(eq=False)
class OfferedConnection:
    """One waiting connection. `ended` is set when it is to be closed."""

    digest: str
    taken: asyncio.Future[tuple[Destination, socket.socket]]
    """Set to its destination and to the service's half of a byte stream."""
    opened: asyncio.Future[bool]
    """Set when the other end has answered; only for a port."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class _Line:
    """The connections of one workspace; all are of the container with this digest."""

    digest: str = ""
    waiting: deque[OfferedConnection] = field(default_factory=deque[OfferedConnection])
    offered: set[OfferedConnection] = field(default_factory=set[OfferedConnection])
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def note_change(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def end(self) -> None:
        for connection in self.offered:
            connection.ended.set()
        self.waiting.clear()
        self.note_change()


@dataclass(frozen=True)
class _Boot:
    digest: str
    text: str


class Switchboard:
    """The connections of all workspaces.

    Args:
        find: returns the digest of the token of a workspace's container that is meant to run, None
            when there is none.
        adopt: notes what is in a container of another service, by its token's digest, or on a volume
            without one.
        has_files: returns whether the container engine has a workspace's volume.
    """

    def __init__(
        self,
        find: Callable[[str], Awaitable[str | None]],
        adopt: Callable[[str, str | None, Sequence[EngineRepository]], Awaitable[None]],
        has_files: Callable[[str], Awaitable[bool]],
    ) -> None:
        self._find = find
        self._adopt = adopt
        self.has_files = has_files
        self._lines: defaultdict[str, _Line] = defaultdict(_Line)
        self._boots: dict[str, _Boot] = {}

    # Boot configurations

    def keep_boot(self, workspace_id: str, text: str) -> str:
        """Keep the configuration of the next start; return the token that opens it, once."""
        token = new_token()
        self._boots[workspace_id] = _Boot(digest_of(token), text)
        return token

    def drop_boot(self, workspace_id: str) -> None:
        """Forget a configuration that nobody may fetch any more."""
        self._boots.pop(workspace_id, None)

    def open_boot(self, workspace_id: str, token: str) -> str | None:
        """Return the configuration, and forget it; None with a wrong token, or a used one."""
        boot = self._boots.get(workspace_id)
        if boot is None or not hmac.compare_digest(boot.digest, digest_of(token)):
            return None
        return self._boots.pop(workspace_id).text

    # Connections

    async def admits(self, workspace_id: str, token: str) -> bool:
        """Return whether a token is that of the container that is meant to run.

        A new container ends the connections of an earlier one.
        """
        digest = digest_of(token)
        known = self._lines.get(workspace_id)
        if known is not None and hmac.compare_digest(known.digest, digest):
            return True
        wanted = await self._find(workspace_id)
        if wanted is None or not hmac.compare_digest(wanted, digest):
            return False
        line = self._lines[workspace_id]
        if line.digest != digest:
            line.end()
            line.digest = digest
        return True

    async def adopt(
        self, workspace_id: str, token: str | None, repositories: Sequence[EngineRepository]
    ) -> None:
        """Note the repositories in a container that another service has started, or on its volume.

        Raises:
            SandboxError: the installation's directory cannot be written.
        """
        await self._adopt(workspace_id, token and digest_of(token), repositories)

    @contextmanager
    def offer(self, workspace_id: str, token: str) -> Generator[OfferedConnection]:
        """Let an admitted connection wait, and be used, within the block."""
        line = self._lines[workspace_id]
        loop = asyncio.get_running_loop()
        connection = OfferedConnection(digest_of(token), loop.create_future(), loop.create_future())
        if connection.digest != line.digest:  # another container was admitted meanwhile
            connection.ended.set()
        else:
            line.waiting.append(connection)
            if len(line.waiting) > MOST_WAITING:
                line.waiting.popleft().ended.set()
        line.offered.add(connection)
        line.note_change()
        try:
            yield connection
        finally:
            line.offered.discard(connection)
            if connection in line.waiting:
                line.waiting.remove(connection)
            if not connection.opened.done():
                connection.opened.set_result(False)
            if connection.taken.done():
                connection.taken.result()[1].close()

    async def take(
        self, workspace_id: str, port: int | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a byte stream to the engine, or to a port of the container; waits for one.

        Raises:
            ConnectionError: nothing listens on the port.
        """
        line = self._lines[workspace_id]
        while not line.waiting:
            await line.changed.wait()
        connection = line.waiting.popleft()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        connection.taken.set_result((Destination(port=port), theirs))
        try:
            if port is not None and not await connection.opened:
                raise ConnectionRefusedError(f"nothing listens on port {port}")
            return await asyncio.open_unix_connection(sock=ours, limit=READ_LIMIT)
        except BaseException:
            connection.ended.set()
            ours.close()
            raise

    async def arrived(self, workspace_id: str, token: str) -> None:
        """Wait until a connection of the container with this token waits."""
        digest, line = digest_of(token), self._lines[workspace_id]
        while line.digest != digest or not line.waiting:
            await line.changed.wait()

    def has(self, workspace_id: str) -> bool:
        """Return whether a workspace's container is connected now."""
        line = self._lines.get(workspace_id)
        return line is not None and bool(line.offered)

    def end(self, workspace_id: str) -> None:
        """End every connection of a workspace, and admit the container no more without asking."""
        if (line := self._lines.pop(workspace_id, None)) is not None:
            line.end()
            line.digest = ""
