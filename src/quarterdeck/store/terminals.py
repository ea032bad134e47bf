"""A terminal session as the cockpit uses it: output that resumes, keys that are typed once."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.client.items import TerminalItem
from quarterdeck.wire.terminals import TerminalSession

if TYPE_CHECKING:
    from quarterdeck.client.client import Client
    from quarterdeck.client.keyboard import Keyboard


class TerminalMemory:
    """What a person made of their terminals, kept as long as the cockpit is open."""

    def __init__(self) -> None:
        self.names: dict[UUID, str] = {}
        """Names given by the person, by session."""
        self.shown: dict[UUID, UUID] = {}
        """The session chosen last, by replica."""

    def name(self, session_id: UUID, name: str) -> None:
        """Names a session; an empty name takes the name away."""
        if name:
            self.names[session_id] = name
        else:
            self.names.pop(session_id, None)


class TerminalLink:
    """One session of one replica. `close` ends the typing; the session itself goes on."""

    def __init__(self, client: "Client", replica_id: UUID, session: TerminalSession) -> None:
        self._client = client
        self.replica_id = replica_id
        self.session = session
        self._keyboard: Keyboard | None = None

    async def items(self) -> AsyncGenerator[TerminalItem]:
        """Output from the retained tail on, without a gap or a repeat.

        Raises:
            ClientError: the session is gone, or the service refuses for good.
        """
        stream = self._client.terminals.stream(self.replica_id, self.session.id)
        async with aclosing(stream):
            async for item in stream:
                yield item

    async def send(self, data: str) -> None:
        """Types text; kept and sent in order while the line is down.

        Raises:
            ClientError: the terminal is gone, so nothing can be typed any more.
        """
        if self._keyboard is None:
            keyboard = self._client.terminals.keyboard(self.replica_id, self.session.id)
            self._keyboard = await keyboard.__aenter__()
        self._keyboard.type(data)

    async def resize(self, cols: int, rows: int) -> None:
        """Asks for another size.

        Raises:
            ClientError: refused or unreachable.
        """
        await self._client.terminals.resize(self.replica_id, self.session.id, cols, rows)

    async def close(self) -> None:
        """Ends what runs for this link."""
        keyboard, self._keyboard = self._keyboard, None
        if keyboard is not None:
            await keyboard.aclose()
