"""An open session with an Agent Client Protocol agent."""

import asyncio
from dataclasses import replace
from typing import Any

from quarterdeck.agents.acp.choices import Choice, NotOfferedError
from quarterdeck.agents.acp.content import prompt_blocks
from quarterdeck.agents.acp.driver import start_process
from quarterdeck.agents.acp.handshake import Handshake
from quarterdeck.agents.acp.link import AgentLink
from quarterdeck.agents.acp.refusals import told, told_as_text
from quarterdeck.agents.acp.shapes import AgentCapabilities, Answered, ConfigOptions
from quarterdeck.agents.port import AgentSink, Prompt, SessionSpec, StopReason, TurnOutcome
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.link import RefusedError
from quarterdeck.agents.session.patience import Patience
from quarterdeck.agents.session.process import AgentProcess
from quarterdeck.agents.session.session import CANCELLED, Session, Turn
from quarterdeck.wire.history import AgentEventType


class AcpSession(Session[AgentLink]):
    """One agent process and its session."""

    def __init__(
        self, preset: Preset, patience: Patience, spec: SessionSpec, sink: AgentSink
    ) -> None:
        super().__init__(preset, patience, spec, sink)
        self._capabilities = AgentCapabilities()
        self._asked = False
        """Whether the agent has been given a prompt that it has not answered."""

    async def start(self) -> AgentProcess:
        """Starts the agent's process; see the frame."""
        return await start_process(self._preset, self._spec)

    def _connect(self, process: AgentProcess) -> AgentLink:
        return AgentLink(self._preset, process, self._recorder, self._desk)

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

    async def _take_turn(self, prompt: Prompt, turn: Turn) -> TurnOutcome:
        try:
            link = await self._ready(prompt)
            blocks = prompt_blocks(prompt, self._capabilities.prompt_capabilities.image)
        except NotOfferedError as error:
            sentence = f"{self._preset.name} was not asked: {error}"
            return TurnOutcome(StopReason.FAILED, sentence, asked=False)
        if turn.interrupted:
            return CANCELLED
        answer = await self._answered(link, {"sessionId": self.id, "prompt": blocks})
        usage = link.usage.of_turn(answer.used)
        if turn.interrupted:
            return TurnOutcome(StopReason.CANCELLED, usage=usage)
        error = told_as_text(self._preset, link.last_words)
        return TurnOutcome(StopReason.FAILED if error else answer.stop_reason, error, usage)

    async def _answered(self, link: AgentLink, params: dict[str, Any]) -> Answered:
        self._recorder.activity.rest()
        link.last_words = ""
        link.replaying = False
        self._asked = True
        try:
            async with self._watched(link):
                return await link.request("session/prompt", params, Answered)
        finally:
            self._asked = False

    async def _ask_to_stop(self, link: AgentLink) -> None:
        if self._asked:
            await link.notify("session/cancel", {"sessionId": self.id})

    def _refusal(self, error: RefusedError) -> str:
        return told(self._preset, error)

    async def _ready(self, prompt: Prompt) -> AgentLink:
        """The link, reopened where needed, with the prompt's mode and model chosen."""
        link = await self._link_for(prompt.model)
        assert link.choices is not None
        if prompt.model:
            given = self._preset.chooses_model_at_start and prompt.model == self._spec.model
            await self._choose(link, link.choices.model(prompt.model, given_at_start=given))
            self._spec = replace(self._spec, model=prompt.model)
        if prompt.thinking_level:
            await self._choose(link, link.choices.thinking(prompt.thinking_level))
        await self._choose(link, link.choices.plan(prompt.plan_mode))
        return link

    async def _link_for(self, model: str | None) -> AgentLink:
        link = self._link
        if link and link.usable and self._needs_restart(link, model):
            await link.close(self._patience.leave)
        if not (link and link.usable):
            self._spec = replace(self._spec, model=model or self._spec.model)
        return await self._usable_link()

    def _needs_restart(self, link: AgentLink, model: str | None) -> bool:
        if model is None or model == self._spec.model or not self._preset.chooses_model_at_start:
            return False
        return link.choices is None or not link.choices.offers_model(model)

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

    async def _tell(self, line: str) -> None:
        content = {"type": "text", "text": f"{line}\n\n"}
        update = {"sessionUpdate": "agent_message_chunk", "content": content}
        await self._recorder.record(AgentEventType.SESSION_UPDATE, update)
