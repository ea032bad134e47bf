"""How far an engine's boot has come, as its journal and its status tell."""

import asyncio
from collections.abc import Sequence

from quarterdeck.engine.link import EngineLink
from quarterdeck.wire.engine import JournalEntry
from quarterdeck.wire.events import EventType
from quarterdeck.wire.setup import SetupPhase, SetupState

_TELLING = (EventType.HOOKS_STATUS, EventType.ERROR)
"""Entries after which the engine is asked how far it is; a boot that fails ends with an error."""
_HOOKS = (SetupPhase.WARM_HOOKS, SetupPhase.START_HOOKS)
"""Phases that end by themselves: every hook has a limit of its own."""


class NotReadyError(Exception):
    """The engine runs, but did not become ready. The text becomes the replica's error."""


class Progress:
    """One connection's view of a boot. `limit` is how many seconds may pass without any progress."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._phase: SetupPhase | None = None
        self._failure_stored = False
        self._moved = asyncio.Event()
        self._news = asyncio.Event()

    def ready(self) -> None:
        """The engine is ready."""
        self._move(SetupPhase.READY)

    def hear(self, entries: Sequence[JournalEntry]) -> None:
        """Entries of the journal were stored."""
        for entry in entries:
            if entry.type == EventType.ENGINE_READY:
                self.ready()
            elif entry.type in _TELLING:
                self._failure_stored = self._failure_stored or entry.type == EventType.ERROR
                self._news.set()

    def catch_up(self, state: SetupState | None) -> None:
        """All is stored that had happened when the engine told this state."""
        if state is not None and state.phase == SetupPhase.FAILED:
            self._failure_stored = True
        self._news.set()

    def learn(self, state: SetupState | None) -> None:
        """The engine has told how far it is. A failure counts once all that led to it is stored.

        Raises:
            NotReadyError: its boot failed.
        """
        if state is None:
            return
        if state.phase == SetupPhase.FAILED:
            if not self._failure_stored:
                return
            raise NotReadyError(state.failure or "Setting the replica up failed.")
        if state.phase != SetupPhase.READY:  # that is told by the journal, in its order
            self._move(state.phase)

    async def follow(self, calls: EngineLink) -> None:
        """Asks the engine whenever something happened in its boot, for as long as the link lasts.

        Raises:
            EngineError: the link was lost.
            NotReadyError: the boot failed.
        """
        while True:
            await self._news.wait()
            self._news.clear()
            self.learn((await calls.status()).setup)

    async def reached(self, *phases: SetupPhase) -> SetupPhase:
        """Waits until it is held or ready, or in one of the phases given.

        Raises:
            NotReadyError: nothing moves any more.
        """
        wanted = phases or (SetupPhase.HELD, SetupPhase.READY)
        while self._phase not in wanted:
            self._moved.clear()
            try:
                async with asyncio.timeout(self._limit):
                    await self._moved.wait()
            except TimeoutError as e:
                if self._phase not in _HOOKS:
                    raise NotReadyError("The replica's engine did not become ready in time.") from e
        assert self._phase is not None  # it is one of those wanted
        return self._phase

    def _move(self, phase: SetupPhase) -> None:
        if self._phase != SetupPhase.READY:
            self._phase = phase
        self._moved.set()
