"""The cockpit as lines: reads commands until the person leaves. Leaving stops nothing."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from quarterdeck.client.errors import NotConnectedError
from quarterdeck.plain.commands import QuitError, obey
from quarterdeck.plain.console import Console
from quarterdeck.plain.replica_lines import summary_line
from quarterdeck.plain.session import Here, Session
from quarterdeck.store.app_state import AppState
from quarterdeck.store.service_choice import ServiceChoice
from quarterdeck.store.services import Services
from quarterdeck.store.signals import Change
from quarterdeck.store.status import ConnectionPhase
from quarterdeck.transcript.text import one_line


class PlainCockpit:
    """One session from its beginning to its end."""

    def __init__(self, services: Services, here: Here) -> None:
        self._services = services
        self._console = Console()
        self._session = Session(services, self._console, here)
        self._talking: asyncio.Task[None] | None = None
        self._command: asyncio.Task[None] | None = None
        self._reason: BaseException | None = None

    async def run(self) -> BaseException | None:
        """Follow the service and obey the person; return what ended it, None when the person left."""
        services = self._services
        with self._console.opened(self._interrupt, self._stop):
            named = (one.name if services.several else one.endpoint for one in services.connections)
            self._session.say(f"Connecting to {', '.join(map(one_line, named))}.")
            services.changed.watch(self._take)
            following = asyncio.create_task(services.current.run())
            beside = [asyncio.create_task(_follow_beside(one)) for one in services.stores[1:]]
            talking = self._talking = asyncio.create_task(self._talk())
            try:
                await asyncio.wait({following, talking}, return_when=asyncio.FIRST_COMPLETED)
                if following.done():
                    following.result()
                if not talking.cancelled():
                    talking.result()
            finally:
                tasks = [following, *beside, talking]
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            if not isinstance(self._reason, BrokenPipeError):
                self._session.say("Left. Agents keep running.")
        return self._reason

    async def _talk(self) -> None:
        session = self._session
        await session.greet()
        session.say(summary_line(self._services.ordered()), "Type help for the commands.")
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
        if all(map(self._is_lost, self._services.stores)):
            # A person may wait, or mend it elsewhere; commands from a pipe would wait for ever.
            problem = self._services.current.connection.problem
            self._stop(NotConnectedError(problem or "Refused.", next_step=""))

    def _is_lost(self, store: AppState) -> bool:
        """Return whether nothing was read of a service, and waiting for it is of no use."""
        phase = store.connection.phase
        unusable = phase == ConnectionPhase.REFUSED or (
            phase == ConnectionPhase.RECONNECTING and not self._console.interactive
        )
        return unusable and not store.listed

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


async def _follow_beside(store: AppState) -> None:
    """Follow a service that is shown beside the one in use: the others go on without it."""
    try:
        await store.run()
    except Exception as error:
        reason = str(error).rstrip(".") or type(error).__name__
        store.lookout.failed(f"It cannot be followed: {reason}.")
        raise


def run(
    service: ServiceChoice, beside: Sequence[ServiceChoice], *, drafts: Path, here: Here
) -> int:
    """Open the cockpit as lines and return the exit status.

    Args:
        service: the one in use.
        beside: others whose replicas are in the same list.
        drafts: the directory for unsent text.
        here: where the person is.

    Raises:
        NotConnectedError: no service could be reached, or refused, before anything was read.
        KeyboardInterrupt: the person or a signal ended it.
        BrokenPipeError: nobody reads the output any more.
    """
    services = Services(service.store(drafts, here.directory))
    for other in beside:
        services.add(other.store(drafts, here.directory, beside=True))

    async def work() -> BaseException | None:
        return await PlainCockpit(services, here).run()

    reason = asyncio.run(work())
    if reason is not None:
        raise reason
    return 0
