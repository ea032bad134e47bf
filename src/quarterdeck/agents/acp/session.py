"""An open session with an Agent Client Protocol agent."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

from quarterdeck.agents.acp.driver import AcpHandshake, start_process
from quarterdeck.agents.acp.link import AgentLink, describe_error, describe_text_error
from quarterdeck.agents.acp.options import NotOfferedError, OptionRequest
from quarterdeck.agents.acp.shapes import (
    AgentCapabilities,
    ConfigOptions,
    PromptResponse,
    file_of,
)
from quarterdeck.agents.port import (
    AgentError,
    AgentSink,
    ModelOffer,
    Prompt,
    SessionSpec,
    StopReason,
    TurnOutcome,
)
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.process import AgentProcess, LinkLostError, RefusedError
from quarterdeck.agents.session.recorder import Timeouts
from quarterdeck.agents.session.session import CANCELLED, EngineTurn, ProcessSession
from quarterdeck.wire.chats import Base64Source, ChatSettings, Image
from quarterdeck.wire.history import AgentEventType


def prompt_blocks(prompt: Prompt, images_welcome: bool) -> list[dict[str, Any]]:
    """Return the blocks of a prompt: its text, then its images.

    Raises:
        NotOfferedError: there are images and the agent does not accept any.
    """
    if prompt.images and not images_welcome:
        raise NotOfferedError("it does not accept images. Send the message without them.")
    text = [{"type": "text", "text": prompt.text}] if prompt.text or not prompt.images else []
    return [*text, *(_image_block(image) for image in prompt.images)]


def _image_block(image: Image) -> dict[str, Any]:
    source = image.source
    if isinstance(source, Base64Source):
        return {"type": "image", "mimeType": source.media_type, "data": source.data}
    name = source.url.rstrip("/").rpartition("/")[2] or source.url
    return {"type": "resource_link", "uri": source.url, "name": name}


_NOT_FOUND = -32002
"""The protocol's code for a resource that the agent does not have."""


_CHECK_SECONDS = 0.1
"""Between looks at an agent that works by itself."""
_STOPPED_SECONDS = 0.5
"""Of silence, after which such an agent has stopped when it was asked to."""


class AcpSession(ProcessSession[AgentLink]):
    """One agent process and its session."""

    def __init__(
        self, preset: Preset, timeouts: Timeouts, spec: SessionSpec, sink: AgentSink
    ) -> None:
        super().__init__(preset, timeouts, spec, sink)
        self._capabilities = AgentCapabilities()
        self._prompting = False
        """Whether the agent has an unanswered prompt, or works by itself."""
        self._used = False
        """Whether the agent did anything with the last prompt, so that it must not be repeated."""

    @property
    def models(self) -> ModelOffer | None:
        """The announced models; see the port."""
        choices = self._link.choices if self._link else None
        return choices.models if choices else None

    @property
    def settings(self) -> ChatSettings:
        """The announced settings; see the port."""
        choices = self._link.choices if self._link else None
        return choices.settings if choices else ChatSettings()

    async def set_permission_mode(self, mode: str) -> None:
        """Change the permission mode; see the port.

        Raises:
            AgentError: the agent does not offer it, or did not accept it.
        """
        link = self._link
        if link is None or not link.usable or link.choices is None:
            return
        try:
            await self._choose(link, link.choices.permission_mode(mode))
        except (NotOfferedError, RefusedError, LinkLostError) as error:
            raise AgentError(f"{self._preset.name} stays in its mode: {error}") from error

    @property
    def own_turn_waits(self) -> bool:
        """Whether the agent began to work by itself; see the port."""
        return self._recorder.own_turn_waits

    async def start(self) -> AgentProcess:
        """Start the agent's process; see `ProcessSession`."""
        return await start_process(self._preset, self._spec)

    async def close(self) -> None:
        """End the process and everything it started, and remove the file with its tool servers."""
        try:
            await super().close()
        finally:
            with suppress(FileNotFoundError, NotADirectoryError):  # it was not written
                await asyncio.to_thread(file_of(self._spec.state_directory).unlink)

    def _connect(self, process: AgentProcess) -> AgentLink:
        self._recorder.takes_own_turns = False
        return AgentLink(self._preset, process, self._recorder, self._requests)

    async def _shake_hands(self, link: AgentLink) -> None:
        handshake = AcpHandshake(self._preset, link, self._spec)
        session_id = await handshake.run(self._spec.session_id)
        self._spec = replace(self._spec, session_id=session_id)
        self._capabilities = handshake.capabilities
        if handshake.forgotten:
            await self._remark(
                f"*The earlier session could not be reopened ({handshake.forgotten}); "
                "this one starts afresh.*"
            )
        if handshake.left_out:
            names = ", ".join(handshake.left_out)
            await self._remark(f"*{self._preset.name} cannot use these MCP servers: {names}.*")

    async def _take_turn(self, prompt: Prompt, turn: EngineTurn) -> TurnOutcome:
        # A prompt would cancel what some agents do by themselves, so it waits for the end.
        if self._recorder.own_turn_waits:
            await self._end_of_own_turn(turn)
        if prompt.own_turn:
            return CANCELLED if turn.interrupted else TurnOutcome(StopReason.END_TURN)
        try:
            self._used = False
            return await self._run_turn(prompt, turn)
        except RefusedError as error:
            link = self._link
            if not self._lost_session(error) or turn.interrupted or link is None or self._used:
                raise
        # An agent whose inner process ended no longer knows the session until it is opened again.
        await link.close(self._timeouts.leave)
        await self._recorder.open_turn()
        return await self._run_turn(prompt, turn)

    def _lost_session(self, error: RefusedError) -> bool:
        words = self._preset.traps.inner_end
        return error.code == _NOT_FOUND or bool(words and words in str(error))

    async def _end_of_own_turn(self, turn: EngineTurn) -> None:
        """Wait until the agent has ended what it began by itself.

        Raises:
            LinkLostError: the agent ended.
        """
        link = self._link
        assert link is not None  # an agent that was prompted has one
        self._prompting = True
        try:
            async with self._watched(link):
                while link.usable and not self._rests(link, turn):  # noqa: ASYNC110 (no event)
                    await asyncio.sleep(_CHECK_SECONDS)
        finally:
            self._prompting = False
            self._recorder.own_turn_waits = False
        if not link.usable:
            raise LinkLostError

    def _rests(self, link: AgentLink, turn: EngineTurn) -> bool:
        activity = self._recorder.activity
        if self._requests.waits:
            return False
        if turn.interrupted:
            return activity.since_message >= _STOPPED_SECONDS
        if activity.silence == 0:  # a tool runs
            return False
        return link.reported_end or activity.silence >= self._timeouts.rest

    async def _run_turn(self, prompt: Prompt, turn: EngineTurn) -> TurnOutcome:
        try:
            link = await self._ready(prompt)
            blocks = prompt_blocks(prompt, self._capabilities.prompt_capabilities.image)
        except NotOfferedError as error:
            sentence = f"{self._preset.name} was not asked: {error}"
            return TurnOutcome(StopReason.FAILED, sentence, asked=False)
        if turn.interrupted:
            return CANCELLED
        answer = await self._request_turn(link, {"sessionId": self.id, "prompt": blocks})
        if self._recorder.open and not turn.interrupted:
            await self._end_of_own_turn(turn)  # a helper still asks
        usage = link.usage.of_turn(answer.used)
        if turn.interrupted:
            return TurnOutcome(StopReason.CANCELLED, usage=usage)
        error = describe_text_error(self._preset, link.last_message)
        # An agent leaves plan mode by itself when its plan was approved: then it was carried out.
        approved = prompt.plan_mode and link.choices is not None and not link.choices.planning
        reason = StopReason.FAILED if error else answer.stop_reason
        return TurnOutcome(reason, error, usage, planned=False if approved else None)

    async def _request_turn(self, link: AgentLink, params: dict[str, Any]) -> PromptResponse:
        self._recorder.activity.rest()
        link.last_message = ""
        link.replaying = False
        link.worked = False
        self._recorder.takes_own_turns = True
        self._prompting = True
        try:
            async with self._watched(link):
                return await link.request("session/prompt", params, PromptResponse)
        finally:
            self._prompting = False
            self._used = link.worked

    async def _ask_to_stop(self, link: AgentLink) -> None:
        if self._prompting:
            await link.notify("session/cancel", {"sessionId": self.id})

    def _refusal(self, error: RefusedError) -> str:
        return describe_error(self._preset, error)

    async def _ready(self, prompt: Prompt) -> AgentLink:
        """Return the link, reopened where needed, with the prompt's mode and model chosen."""
        link = await self._link_for(prompt.model)
        assert link.choices is not None
        if prompt.model:
            set_at_start = self._preset.chooses_model_at_start and prompt.model == self._spec.model
            await self._choose(link, link.choices.model(prompt.model, set_at_start=set_at_start))
            self._spec = replace(self._spec, model=prompt.model)
        if prompt.thinking_level:
            await self._choose(link, link.choices.thinking(prompt.thinking_level))
        mode = None
        if wanted := prompt.permission_mode or self._preset.permission_mode:
            # One that is no longer offered, as after an update of the agent, must not stop the turn.
            with suppress(NotOfferedError):
                mode = link.choices.permission_mode(wanted)
        await self._choose(link, None if prompt.plan_mode else mode)
        await self._choose(link, link.choices.plan(prompt.plan_mode))
        return link

    async def _link_for(self, model: str | None) -> AgentLink:
        link = self._link
        if link and link.usable and self._needs_restart(link, model):
            await link.close(self._timeouts.leave)
        if not (link and link.usable):
            self._spec = replace(self._spec, model=model or self._spec.model)
        return await self._usable_link()

    def _needs_restart(self, link: AgentLink, model: str | None) -> bool:
        if model is None or model == self._spec.model or not self._preset.chooses_model_at_start:
            return False
        return link.choices is None or not link.choices.offers_model(model)

    async def _choose(self, link: AgentLink, choice: OptionRequest | None) -> None:
        if choice is None or link.choices is None:
            return
        try:
            async with asyncio.timeout(self._timeouts.choose):
                params = {"sessionId": self.id, **choice.params}
                answer = await link.request(choice.method, params, ConfigOptions)
        except TimeoutError as error:
            raise NotOfferedError("it did not answer a change of mode or model.") from error
        link.choices.chosen(choice)
        link.choices.replace(answer)

    async def _remark(self, line: str) -> None:
        content = {"type": "text", "text": f"{line}\n\n"}
        update = {"sessionUpdate": "agent_message_chunk", "content": content}
        await self._recorder.record(AgentEventType.SESSION_UPDATE, update)
