"""The cockpit as lines: reads commands until the person leaves. Leaving stops nothing."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from quarterdeck.client.errors import NotConnectedError
from quarterdeck.plain.commands import QuitError, obey
from quarterdeck.plain.console import Console
from quarterdeck.plain.replica_lines import summary_line
from quarterdeck.plain.session import Here, Session
from quarterdeck.store.app_state import AppState
from quarterdeck.store.disk import open_disk
from quarterdeck.store.signals import Change
from quarterdeck.store.status import ConnectionPhase

if TYPE_CHECKING:
    from quarterdeck.client.client import Client
    from quarterdeck.store.connection_monitor import Revive


class PlainCockpit:
    """One session from its beginning to its end."""

    def __init__(self, app_state: AppState, here: Here) -> None:
        self._app_state = app_state
        self._console = Console()
        self._session = Session(app_state, self._console, here)
        self._talking: asyncio.Task[None] | None = None
        self._command: asyncio.Task[None] | None = None
        self._reason: BaseException | None = None

    async def run(self) -> BaseException | None:
        """Follow the service and obey the person; return what ended it, None when the person left."""
        app_state = self._app_state
        with self._console.opened(self._interrupt, self._stop):
            self._session.say(f"Connecting to {app_state.connection.endpoint}.")
            app_state.changed.watch(self._take)
            following = asyncio.create_task(app_state.run())
            talking = self._talking = asyncio.create_task(self._talk())
            try:
                await asyncio.wait({following, talking}, return_when=asyncio.FIRST_COMPLETED)
                if following.done():
                    following.result()
                if not talking.cancelled():
                    talking.result()
            finally:
                following.cancel()
                talking.cancel()
                await asyncio.gather(following, talking, return_exceptions=True)
            if not isinstance(self._reason, BrokenPipeError):
                self._session.say("Left. Agents keep running.")
        return self._reason

    async def _talk(self) -> None:
        session = self._session
        await session.greet()
        session.say(summary_line(self._session.services), "Type help for the commands.")
        while (line := await self._console.line()) is not None:
            self._command = asyncio.create_task(obey(session, line))
            try:
                await self._command
            except QuitError:
                return
            except asyncio.CancelledError:
                if self._reason is not None:
                    raise
                session.say("Canceled.")
            finally:
                self._command = None

    def _take(self, change: Change) -> None:
        self._session.take(change)
        connection = self._app_state.connection
        unusable = connection.phase == ConnectionPhase.REFUSED or (
            connection.phase == ConnectionPhase.RECONNECTING and not self._console.interactive
        )
        if unusable and not self._app_state.listed:
            # A person may wait, or mend it elsewhere; commands from a pipe would wait for ever.
            self._stop(NotConnectedError(connection.problem or "Refused.", next_step=""))

    def _interrupt(self) -> None:
        """Cancel the running command; without one, leave."""
        if self._command is not None:
            self._command.cancel()
        else:
            self._stop(KeyboardInterrupt())

    def _stop(self, reason: BaseException) -> None:
        self._reason = self._reason or reason
        if self._talking is not None:
            self._talking.cancel()


def run(
    client_factory: "Callable[[], Client]",
    *,
    endpoint: str,
    drafts: Path,
    revive: "Revive | None",
    here: Here,
) -> int:
    """Open the cockpit as lines and return the exit status.

    The arguments are those of the full-screen cockpit; `here` is where the person is.

    Raises:
        NotConnectedError: the service could not be reached, or refused, before anything was read.
        KeyboardInterrupt: the person or a signal ended it.
        BrokenPipeError: nobody reads the output any more.
    """
    disk = open_disk(drafts, endpoint)
    app_state = AppState(client_factory, endpoint=endpoint, disk=disk, revive=revive)
    app_state.directory = here.directory

    async def work() -> BaseException | None:
        return await PlainCockpit(app_state, here).run()

    reason = asyncio.run(work())
    if reason is not None:
        raise reason
    return 0
