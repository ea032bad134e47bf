"""An open session with an agent: turns one at a time, their end, and the agent's.

What depends on the protocol is left to `start`, `_connect`, `_shake_hands`, `_take_turn`,
`_ask_to_stop` and `_refusal`. Implements `AgentSession`.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from quarterdeck.agents.port import (
    AgentDiedError,
    AgentSink,
    AgentUnavailableError,
    Prompt,
    SessionSpec,
    StopReason,
    TurnOutcome,
)
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.activity import silence
from quarterdeck.agents.session.desk import Desk
from quarterdeck.agents.session.link import Link, LinkLostError, RefusedError
from quarterdeck.agents.session.patience import Patience
from quarterdeck.agents.session.process import AgentProcess
from quarterdeck.agents.session.recorder import Recorder

_Link = TypeVar("_Link", bound=Link)

CANCELLED = TurnOutcome(StopReason.CANCELLED)


@dataclass
class Turn:
    """The engine's turn."""

    interrupted: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Session(ABC, Generic[_Link]):
    """One agent process and its session; after the process is lost, the next prompt reopens both."""

    def __init__(
        self, preset: Preset, patience: Patience, spec: SessionSpec, sink: AgentSink
    ) -> None:
        self._preset = preset
        self._patience = patience
        self._spec = spec
        self._recorder = Recorder(sink)
        self._desk = Desk(self._recorder)
        self._link: _Link | None = None
        self._turn: Turn | None = None
        self._closed = False

    @property
    def id(self) -> str:
        """The agent's session id. It may change when a lost session cannot be reopened."""
        return self._spec.session_id or ""

    @property
    def process_id(self) -> int | None:
        """The agent's process, while it runs."""
        return self._link.process_id if self._link and self._link.usable else None

    @abstractmethod
    async def start(self) -> AgentProcess:
        """Starts the agent's process.

        Raises:
            AgentUnavailableError: not installed, no such directory, or the system refused.
        """

    async def open(self, process: AgentProcess) -> None:
        """Opens the session on a started process, which is ended when that fails.

        Raises:
            AgentUnavailableError: the agent did not get as far as an open session.
        """
        link = self._link = self._connect(process)
        try:
            async with asyncio.timeout(self._patience.start):
                await self._shake_hands(link)
        except TimeoutError as error:
            raise await self._unavailable(link, self._late()) from error
        except LinkLostError as error:
            raise await self._unavailable(link, await link.obituary()) from error
        except RefusedError as error:
            raise await self._unavailable(link, self._refusal(error)) from error
        except BaseException:
            await link.close(0)
            raise

    async def prompt(self, prompt: Prompt) -> TurnOutcome:
        """Runs one turn to its end; see the port.

        Raises:
            AgentDiedError: the process ended in mid-turn.
            AgentUnavailableError: the session had to be reopened, and could not.
        """
        turn = self._turn = Turn()
        try:
            await self._recorder.open_turn()
            return await self._run(prompt, turn)
        except AgentUnavailableError:
            if turn.interrupted:
                return CANCELLED
            raise
        except asyncio.CancelledError:
            # Left alone, the agent would go on and speak into the next turn.
            if self._link:
                await self._link.close(0)
            raise
        finally:
            await self._finish(turn)

    async def interrupt(self) -> None:
        """Stops the running turn; an agent that does not obey in time is killed."""
        turn, link = self._turn, self._link
        if turn is None:
            return
        turn.interrupted = True
        try:
            async with asyncio.timeout(self._patience.cancel):
                if link:
                    await self._ask_to_stop(link)
                await self._desk.cancel_all()
                await turn.ended.wait()
        except TimeoutError:
            if self._link:
                await self._link.close(0)
            await turn.ended.wait()

    async def respond(self, request_id: str, option_id: str | None, text: str | None) -> bool:
        """Answers a permission request or question; False when it is no longer awaited.

        Raises:
            AgentError: the request has no such option; a text is no answer to it.
        """
        return await self._desk.answer(request_id, option_id, text)

    async def close(self) -> None:
        """Ends the process and everything it started. Safe to call twice."""
        self._closed = True
        if self._link:
            await self._link.close(self._patience.leave)

    # What depends on the protocol

    @abstractmethod
    def _connect(self, process: AgentProcess) -> _Link: ...

    @abstractmethod
    async def _shake_hands(self, link: _Link) -> None:
        """From a started process to an open session."""

    @abstractmethod
    async def _take_turn(self, prompt: Prompt, turn: Turn) -> TurnOutcome:
        """One turn on a link that is usable, or made so by `_usable_link`."""

    @abstractmethod
    async def _ask_to_stop(self, link: _Link) -> None:
        """Asks the agent to end the turn, if it has been given one."""

    @abstractmethod
    def _refusal(self, error: RefusedError) -> str:
        """A sentence on an error that the agent answered with."""

    def _failed(self, sentence: str) -> TurnOutcome:
        return TurnOutcome(StopReason.FAILED, sentence)

    def _turn_over(self) -> None:
        """The engine's turn is over."""

    # A turn

    async def _run(self, prompt: Prompt, turn: Turn) -> TurnOutcome:
        try:
            return await self._take_turn(prompt, turn)
        except RefusedError as error:
            return CANCELLED if turn.interrupted else self._failed(self._refusal(error))
        except LinkLostError as error:
            return await self._bury(turn, error)

    async def _usable_link(self) -> _Link:
        link = self._link
        if link and link.usable:
            return link
        if self._closed:
            raise AgentUnavailableError(f"The session with {self._preset.name} is closed.")
        if link:
            await link.close(self._patience.leave)
        await self.open(await self.start())
        assert self._link is not None
        return self._link

    @asynccontextmanager
    async def _watched(self, link: _Link) -> AsyncGenerator[None]:
        """Around a wait for the agent: one in which nothing happens any more is given up."""
        self._recorder.activity.touch()
        watch = asyncio.create_task(self._watch(link), name="silence of an agent")
        try:
            yield
        finally:
            watch.cancel()

    async def _watch(self, link: _Link) -> None:
        limit = self._patience.silence
        await silence(self._recorder.activity, limit, lambda: self._desk.waits)
        await link.give_up(
            f"{self._preset.name} did nothing for {limit:g} seconds, so it was ended. "
            "The next message reopens its session."
        )

    async def _finish(self, turn: Turn) -> None:
        try:
            await self._desk.cancel_all()
        finally:
            self._recorder.close_turn()
            self._turn_over()
            self._turn = None
            turn.ended.set()

    async def _bury(self, turn: Turn, error: LinkLostError) -> TurnOutcome:
        link = self._link
        assert link is not None
        try:
            if turn.interrupted or self._closed:
                return CANCELLED
            if link.fault:
                raise link.fault
            raise AgentDiedError(await link.obituary()) from error
        finally:
            await link.close(0)

    async def _unavailable(self, link: _Link, sentence: str) -> AgentUnavailableError:
        await link.close(0)
        return AgentUnavailableError(sentence)

    def _late(self) -> str:
        return f"{self._preset.name} did not answer within {self._patience.start:g} seconds."
