"""An open session with an agent: turns one at a time, their end, and the agent's.

The protocol's part is in `start`, `_connect`, `_shake_hands`, `_take_turn`,
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
from quarterdeck.agents.session.permissions import PermissionRequests
from quarterdeck.agents.session.policy import PolicyJudge
from quarterdeck.agents.session.process import (
    AgentProcess,
    LinkLostError,
    ProcessLink,
    RefusedError,
)
from quarterdeck.agents.session.recorder import Recorder, Timeouts, wait_for_silence
from quarterdeck.wire.history import AgentEventType

_Link = TypeVar("_Link", bound=ProcessLink)

CANCELLED = TurnOutcome(StopReason.CANCELLED)


@dataclass
class EngineTurn:
    """The engine's turn."""

    interrupted: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class ProcessSession(ABC, Generic[_Link]):
    """One agent process and its session; after its end, the next prompt reopens both."""

    def __init__(
        self, preset: Preset, timeouts: Timeouts, spec: SessionSpec, sink: AgentSink
    ) -> None:
        self._preset = preset
        self._timeouts = timeouts
        self._spec = spec
        self._recorder = Recorder(sink, spec.on_own_turn)
        directory = spec.working_directory
        self._policy = PolicyJudge(spec.permissions, spec.workspace or directory, directory)
        self._requests = PermissionRequests(self._recorder, self._policy.answer)
        self._link: _Link | None = None
        self._turn: EngineTurn | None = None
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
        """Start the agent's process.

        Raises:
            AgentUnavailableError: not installed, no such directory, or the system refused.
        """

    async def open(self, process: AgentProcess) -> None:
        """Open the session on a started process, which is ended when that fails.

        Raises:
            AgentUnavailableError: the agent did not open a session.
        """
        link = self._link = self._connect(process)
        try:
            async with asyncio.timeout(self._timeouts.start):
                await self._shake_hands(link)
        except TimeoutError as error:
            raise await self._unavailable(link, self._late()) from error
        except LinkLostError as error:
            raise await self._unavailable(link, await link.exit_reason()) from error
        except RefusedError as error:
            raise await self._unavailable(link, self._refusal(error)) from error
        except BaseException:
            await link.close(0)
            raise

    async def prompt(self, prompt: Prompt) -> TurnOutcome:
        """Run one turn to its end; see the port.

        Raises:
            AgentDiedError: the process ended during the turn.
            AgentUnavailableError: the session had to be reopened, and could not.
        """
        turn = self._turn = EngineTurn()
        if not prompt.own_turn:
            self._policy.plans = prompt.plan_mode
        try:
            await self._recorder.open_turn()
            return await self._run(prompt, turn)
        except AgentUnavailableError:
            if turn.interrupted:
                return CANCELLED
            raise
        except asyncio.CancelledError:
            # Otherwise the agent would continue and send events into the next turn.
            if self._link:
                await self._link.close(0)
            raise
        finally:
            await self._finish(turn)

    async def interrupt(self) -> None:
        """Stop the running turn; an agent that does not stop in time is killed."""
        turn, link = self._turn, self._link
        if turn is None:
            return
        turn.interrupted = True
        try:
            async with asyncio.timeout(self._timeouts.cancel):
                if link:
                    await self._ask_to_stop(link)
                await self._requests.cancel_all()
                await turn.ended.wait()
        except TimeoutError:
            if self._link:
                await self._link.close(0)
            await turn.ended.wait()

    async def respond(self, request_id: str, option_id: str | None, text: str | None) -> bool:
        """Answer a permission request or question; False when it is closed.

        Raises:
            AgentError: the request has no such option, or the text is not an answer.
        """
        return await self._requests.answer(request_id, option_id, text)

    async def review_questions(self) -> None:
        """Answer open questions that the permission policy decides now; see the port."""
        await self._requests.review()

    async def close(self) -> None:
        """End the process and everything it started. Safe to call twice."""
        self._closed = True
        if self._link:
            await self._link.close(self._timeouts.leave)

    # Protocol-specific

    @abstractmethod
    def _connect(self, process: AgentProcess) -> _Link: ...

    @abstractmethod
    async def _shake_hands(self, link: _Link) -> None:
        """Open a session with a started process."""

    @abstractmethod
    async def _take_turn(self, prompt: Prompt, turn: EngineTurn) -> TurnOutcome:
        """Run one turn on the link of `_usable_link`."""

    @abstractmethod
    async def _ask_to_stop(self, link: _Link) -> None:
        """Ask the agent to end the turn, if it has one."""

    @abstractmethod
    def _refusal(self, error: RefusedError) -> str:
        """Return a sentence on the agent's error."""

    def _failed(self, sentence: str) -> TurnOutcome:
        return TurnOutcome(StopReason.FAILED, sentence)

    def _turn_over(self) -> None:
        """Note that the engine's turn has ended."""

    # A turn

    async def _run(self, prompt: Prompt, turn: EngineTurn) -> TurnOutcome:
        try:
            return await self._take_turn(prompt, turn)
        except RefusedError as error:
            return CANCELLED if turn.interrupted else self._failed(self._refusal(error))
        except LinkLostError as error:
            return await self._handle_exit(turn, error)

    async def _usable_link(self) -> _Link:
        link = self._link
        if link and link.usable:
            return link
        if self._closed:
            raise AgentUnavailableError(f"The session with {self._preset.name} is closed.")
        if link:
            await link.close(self._timeouts.leave)
        await self.open(await self.start())
        assert self._link is not None
        return self._link

    @asynccontextmanager
    async def _watched(self, link: _Link) -> AsyncGenerator[None]:
        """Report a silent agent in the chat, and end it when it hangs."""
        self._recorder.activity.touch()
        watches = [
            asyncio.create_task(self._watch(link), name="silence of an agent"),
            asyncio.create_task(self._report_silence(), name="notice of silence"),
        ]
        try:
            yield
        finally:
            for watch in watches:
                watch.cancel()

    async def _watch(self, link: _Link) -> None:
        limit = self._timeouts.silence
        await wait_for_silence(self._recorder.activity, limit, lambda: self._requests.waits)
        await link.give_up(
            f"{self._preset.name} did nothing for {limit:g} seconds, so it was ended. "
            "The next message reopens its session."
        )

    async def _report_silence(self) -> None:
        """Say once for each silence that nothing comes from the agent."""
        activity, limit = self._recorder.activity, self._timeouts.notice
        while True:
            await activity.quiet(limit)
            silent_since = activity.last_message_at
            if not self._requests.waits:
                text = f"No sign of life for {_duration(limit)}; interrupt or wait."
                await self._recorder.record(AgentEventType.NOTICE, {"text": text})
            while activity.last_message_at == silent_since:  # noqa: ASYNC110 (no event)
                await asyncio.sleep(limit)

    async def _finish(self, turn: EngineTurn) -> None:
        try:
            # The agent's answer closes it earlier; a question since then is of its next turn.
            if self._recorder.open:
                await self._requests.cancel_all()
        finally:
            if self._recorder.open:
                self._recorder.close_turn()
            self._turn_over()
            self._turn = None
            turn.ended.set()

    async def _handle_exit(self, turn: EngineTurn, error: LinkLostError) -> TurnOutcome:
        link = self._link
        assert link is not None
        try:
            if turn.interrupted or self._closed:
                return CANCELLED
            if link.fault:
                raise link.fault
            raise AgentDiedError(await link.exit_reason()) from error
        finally:
            await link.close(0)

    async def _unavailable(self, link: _Link, sentence: str) -> AgentUnavailableError:
        await link.close(0)
        return AgentUnavailableError(sentence)

    def _late(self) -> str:
        return f"{self._preset.name} did not answer within {self._timeouts.start:g} seconds."


def _duration(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"
