"""An open session with an Agent Client Protocol agent. Implements `AgentSession`."""

import asyncio
from dataclasses import dataclass, field, replace

from quarterdeck.agents.acp.choices import Choice, NotOfferedError
from quarterdeck.agents.acp.content import prompt_blocks
from quarterdeck.agents.acp.driver import Patience, start_process
from quarterdeck.agents.acp.handshake import AUTH_REQUIRED, Handshake
from quarterdeck.agents.acp.link import AgentLink, LinkLostError
from quarterdeck.agents.acp.permissions import PermissionDesk
from quarterdeck.agents.acp.process import AgentProcess
from quarterdeck.agents.acp.recorder import Recorder
from quarterdeck.agents.acp.sdk import RequestError
from quarterdeck.agents.acp.shapes import AgentCapabilities, Answered, ConfigOptions
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
from quarterdeck.wire.history import AgentEventType

_CANCELLED = TurnOutcome(StopReason.CANCELLED)


@dataclass
class _Turn:
    sent: bool = False
    interrupted: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class AcpSession:
    """One agent process and its session; after the process is lost, the next prompt reopens both."""

    def __init__(
        self, preset: Preset, patience: Patience, spec: SessionSpec, sink: AgentSink
    ) -> None:
        self._preset = preset
        self._patience = patience
        self._spec = spec
        self._recorder = Recorder(sink)
        self._desk = PermissionDesk(self._recorder)
        self._link: AgentLink | None = None
        self._capabilities = AgentCapabilities()
        self._turn: _Turn | None = None
        self._closed = False

    @property
    def id(self) -> str:
        """The agent's session id. It may change when a lost session cannot be reopened."""
        return self._spec.session_id or ""

    async def open(self, process: AgentProcess) -> None:
        """Opens the session on a started process, which is ended when that fails.

        Raises:
            AgentUnavailableError: the agent did not get as far as an open session.
        """
        link = AgentLink(self._preset.name, process, self._recorder, self._desk)
        self._link = link
        try:
            async with asyncio.timeout(self._patience.start):
                await self._shake_hands(link)
        except TimeoutError as error:
            raise await self._unavailable(link, self._late()) from error
        except LinkLostError as error:
            raise await self._unavailable(link, await link.obituary()) from error
        except RequestError as error:
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
        turn = self._turn = _Turn()
        try:
            await self._recorder.open_turn()
            return await self._run(prompt, turn)
        except AgentUnavailableError:
            if turn.interrupted:
                return _CANCELLED
            raise
        except asyncio.CancelledError:
            # Left alone, the agent would go on and speak into the next turn.
            if self._link:
                await self._link.close(0)
            raise
        finally:
            await self._finish(turn)

    async def interrupt(self) -> None:
        """Cancels the running turn; an agent that does not obey in time is killed."""
        turn, link = self._turn, self._link
        if turn is None:
            return
        turn.interrupted = True
        try:
            async with asyncio.timeout(self._patience.cancel):
                if turn.sent and link:
                    await link.notify("session/cancel", {"sessionId": self.id})
                await self._desk.cancel_all()
                await turn.ended.wait()
        except TimeoutError:
            if self._link:
                await self._link.close(0)
            await turn.ended.wait()

    async def respond(self, request_id: str, option_id: str | None, text: str | None) -> bool:
        """Answers a permission request; False when it is no longer awaited.

        Raises:
            AgentError: the request has no such option; a text is no answer to it.
        """
        return await self._desk.answer(request_id, option_id)

    async def close(self) -> None:
        """Ends the process and everything it started. Safe to call twice."""
        self._closed = True
        if self._link:
            await self._link.close(self._patience.leave)

    async def _shake_hands(self, link: AgentLink) -> None:
        handshake = Handshake(self._preset, link, self._spec)
        session_id = await handshake.run(self._spec.session_id)
        self._spec = replace(self._spec, session_id=session_id)
        self._capabilities = handshake.capabilities
        if handshake.forgotten:
            await self._tell(
                f"*The earlier session could not be reopened ({handshake.forgotten}); "
                "this one starts afresh.*"
            )
        if handshake.left_out:
            names = ", ".join(handshake.left_out)
            await self._tell(f"*{self._preset.name} cannot use these MCP servers: {names}.*")

    async def _finish(self, turn: _Turn) -> None:
        try:
            await self._desk.cancel_all()
        finally:
            self._recorder.close_turn()
            self._turn = None
            turn.ended.set()

    async def _run(self, prompt: Prompt, turn: _Turn) -> TurnOutcome:
        try:
            link = await self._ready(prompt)
            blocks = prompt_blocks(prompt, self._capabilities.prompt_capabilities.image)
            if turn.interrupted:
                return _CANCELLED
            turn.sent = True
            params = {"sessionId": self.id, "prompt": blocks}
            answer = await link.request("session/prompt", params, Answered)
        except NotOfferedError as error:
            return TurnOutcome(StopReason.FAILED, f"{self._preset.name} was not asked: {error}")
        except RequestError as error:
            return _CANCELLED if turn.interrupted else self._failed(error)
        except LinkLostError as error:
            return await self._lost(turn, error)
        reason = StopReason.CANCELLED if turn.interrupted else answer.stop_reason
        return TurnOutcome(reason, usage=answer.usage)

    async def _ready(self, prompt: Prompt) -> AgentLink:
        """The link, reopened where needed, with the prompt's mode and model chosen."""
        link = await self._usable_link(prompt.model)
        assert link.choices is not None
        if prompt.model:
            await self._choose(link, link.choices.model(prompt.model))
        if prompt.thinking_level:
            await self._choose(link, link.choices.thinking(prompt.thinking_level))
        await self._choose(link, link.choices.plan(prompt.plan_mode))
        return link

    async def _usable_link(self, model: str | None) -> AgentLink:
        link = self._link
        if link and link.usable and not self._needs_restart(link, model):
            return link
        if self._closed:
            raise AgentUnavailableError(f"The session with {self._preset.name} is closed.")
        if link:
            await link.close(self._patience.leave)
        self._spec = replace(self._spec, model=model or self._spec.model)
        await self.open(await start_process(self._preset, self._spec))
        assert self._link is not None
        return self._link

    def _needs_restart(self, link: AgentLink, model: str | None) -> bool:
        chosen_here = link.choices is not None and link.choices.offers_models
        changed = model is not None and model != self._spec.model
        return changed and not chosen_here and self._preset.chooses_model_at_start

    async def _choose(self, link: AgentLink, choice: Choice | None) -> None:
        if choice is None or link.choices is None:
            return
        try:
            async with asyncio.timeout(self._patience.choose):
                params = {"sessionId": self.id, **choice.params}
                answer = await link.request(choice.method, params, ConfigOptions)
        except TimeoutError as error:
            raise NotOfferedError("it did not answer a change of mode or model.") from error
        link.choices.chosen(choice)
        link.choices.replace(answer)

    async def _lost(self, turn: _Turn, error: LinkLostError) -> TurnOutcome:
        link = self._link
        assert link is not None
        try:
            if turn.interrupted or self._closed:
                return _CANCELLED
            if link.sink_fault:
                raise link.sink_fault
            raise AgentDiedError(await link.obituary()) from error
        finally:
            await link.close(0)

    async def _unavailable(self, link: AgentLink, sentence: str) -> AgentUnavailableError:
        await link.close(0)
        return AgentUnavailableError(sentence)

    async def _tell(self, line: str) -> None:
        content = {"type": "text", "text": f"{line}\n\n"}
        update = {"sessionUpdate": "agent_message_chunk", "content": content}
        await self._recorder.record(AgentEventType.SESSION_UPDATE, update)

    def _late(self) -> str:
        return f"{self._preset.name} did not answer within {self._patience.start:g} seconds."

    def _failed(self, error: RequestError) -> TurnOutcome:
        return TurnOutcome(StopReason.FAILED, self._refusal(error))

    def _refusal(self, error: RequestError) -> str:
        sentence = f"{self._preset.name} reported an error: {error}"
        detail = _detail(error.data)
        sentence += f" ({detail})" if detail and detail not in sentence else ""
        keys = " or ".join(self._preset.keys)
        if error.code == AUTH_REQUIRED and keys:
            sentence += f". Set the variable {keys} in the environment"
        return sentence if sentence.endswith(".") else sentence + "."


def _detail(data: object) -> str:
    match data:
        case str():
            return data
        case {"details": str(text)} | {"message": str(text)} | {"error": str(text)}:
            return text
        case _:
            return ""
