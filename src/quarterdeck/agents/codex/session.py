"""An open thread of codex. Implements `GoalSession`."""

import asyncio
from dataclasses import replace
from typing import Any

from quarterdeck.agents.codex.content import input_of
from quarterdeck.agents.codex.failures import failure
from quarterdeck.agents.codex.handshake import Handshake, key_to_use
from quarterdeck.agents.codex.hearing import Hearing
from quarterdeck.agents.codex.link import CodexLink
from quarterdeck.agents.codex.settings import Settings
from quarterdeck.agents.codex.start import start_process
from quarterdeck.agents.codex.thread import Thread
from quarterdeck.agents.codex.turns import NativeTurn
from quarterdeck.agents.objects import as_object
from quarterdeck.agents.port import (
    AgentError,
    AgentSink,
    AgentUnavailableError,
    GoalWish,
    Prompt,
    SessionSpec,
    StopReason,
    TurnOutcome,
)
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.link import LinkLostError, RefusedError
from quarterdeck.agents.session.patience import Patience
from quarterdeck.agents.session.process import AgentProcess
from quarterdeck.agents.session.session import CANCELLED, Session, Turn

Params = dict[str, Any]


class CodexSession(Session[CodexLink]):
    """One codex process with one thread."""

    def __init__(
        self, preset: Preset, patience: Patience, spec: SessionSpec, sink: AgentSink
    ) -> None:
        super().__init__(preset, patience, spec, sink)
        self._key: str | None = None
        self._hearing = Hearing(self._recorder, self._desk)
        self._settings = Settings(self._list_models)
        self._thread: Thread | None = None

    async def start(self) -> AgentProcess:
        """Starts codex's process; see the frame."""
        self._key = await asyncio.to_thread(key_to_use, self._preset, self._spec)
        return await start_process(self._preset, self._spec, self._key)

    async def change_goal(self, wish: GoalWish) -> None:
        """Brings codex's goal in line with the wish; without a process, the next turn does.

        Raises:
            AgentError: codex did not take it.
        """
        if self._link is None or not self._link.usable or self._thread is None:
            return
        try:
            async with asyncio.timeout(self._patience.choose):
                await self._thread.align(wish)
                if not wish.active and self._hearing.turns.unasked:
                    await self._thread.stop_running()
        except (RefusedError, LinkLostError, TimeoutError) as error:
            raise AgentError(f"{self._preset.name} did not take the goal: {error!r}.") from error

    # Opening

    def _connect(self, process: AgentProcess) -> CodexLink:
        self._thread = None
        self._hearing = Hearing(self._recorder, self._desk)
        return CodexLink(self._preset.name, process, self._recorder.activity, self._hearing)

    async def _shake_hands(self, link: CodexLink) -> None:
        hearing = self._hearing
        handshake = Handshake(self._preset, link, self._spec, self._key, hearing.opened)
        try:
            opened = await handshake.run()
        except AgentUnavailableError as error:
            warned = "".join(f" It warned: {one}" for one in hearing.narrator.warnings)
            raise AgentUnavailableError(f"{error}{warned}") from error
        self._spec = replace(self._spec, session_id=opened.thread_id)
        self._settings.opened(opened.answer)
        self._thread = Thread(link, opened.thread_id, hearing, self._patience)
        await self._thread.learn_goal()
        if opened.forgotten:
            await hearing.narrator.remark(
                f"The earlier session could not be reopened ({opened.forgotten}); "
                "this one starts afresh."
            )
        if opened.left_out:
            names = ", ".join(opened.left_out)
            await hearing.narrator.remark(
                f"{self._preset.name} cannot use these MCP servers: {names}."
            )

    async def _list_models(self) -> Params:
        assert self._link is not None
        return await self._link.request("model/list", {"includeHidden": True})

    # A turn

    async def _take_turn(self, prompt: Prompt, turn: Turn) -> TurnOutcome:
        self._hearing.keep_open = False
        link = await self._usable_link()
        thread = self._thread
        assert thread is not None
        if turn.interrupted:
            return CANCELLED
        native = await self._begin(link, thread, prompt)
        if native is None:
            return TurnOutcome(StopReason.END_TURN, goal=self._hearing.goal.report())
        if turn.interrupted:  # it came before there was anything to stop
            await thread.stop()
        async with self._watched(link):
            record = await native.ended
        return await self._conclude(thread, turn, native, record)

    async def _begin(self, link: CodexLink, thread: Thread, prompt: Prompt) -> NativeTurn | None:
        """The turn that the prompt is about; None when the goal needs no further one."""
        turns, wish = self._hearing.turns, prompt.goal
        if prompt.continuation:
            return turns.take_unasked() or await self._go_on(thread, wish)
        # Codex may be about to begin the next turn, which would be taken for ours.
        await thread.pause_goal()
        if turns.running is not None:  # the person goes first
            await thread.stop_running()
        turns.forget_unasked()
        if wish is None:
            return await self._ask(link, prompt)
        if not wish.fresh:
            await thread.align(replace(wish, active=wish.active and self._hearing.goal.active))
        elif self._is_goal_alone(prompt, wish):
            return await self._work(link, thread, prompt)
        native = await self._ask(link, prompt)
        if wish.fresh:
            await thread.align(wish)
        return native

    def _is_goal_alone(self, prompt: Prompt, wish: GoalWish) -> bool:
        """Whether the goal says all that the message says, so that codex is told once."""
        more = prompt.images or prompt.fast_mode or self._settings.plans(prompt)
        return prompt.text == wish.objective and not more

    async def _ask(self, link: CodexLink, prompt: Prompt) -> NativeTurn:
        wanted = await self._settings.wanted(prompt) | await self._settings.speed(prompt)
        params = {"threadId": self.id, "input": input_of(prompt), **wanted}
        adopted: list[NativeTurn] = []

        def heed(answer: Params) -> None:
            adopted.append(self._hearing.turns.adopt(str(as_object(answer.get("turn")).get("id"))))

        await link.request("turn/start", params, heed)
        self._settings.chosen(prompt)
        return adopted[0]

    async def _work(self, link: CodexLink, thread: Thread, prompt: Prompt) -> NativeTurn:
        """Begins to work towards a goal."""
        assert prompt.goal is not None
        wanted = await self._settings.wanted(prompt)
        if wanted:
            await link.request("thread/settings/update", {"threadId": self.id, **wanted})
            self._settings.chosen(prompt)
        begun = self._hearing.turns.next_one()
        await thread.align(prompt.goal)
        return await begun

    async def _go_on(self, thread: Thread, wish: GoalWish | None) -> NativeTurn | None:
        """The next turn towards the goal; made to begin when codex has stopped at the last."""
        if wish is None:
            raise RefusedError("there is no goal to go on with")
        begun = self._hearing.turns.next_one()
        await thread.work_on(wish)
        if not self._hearing.goal.active:
            return None
        try:
            async with asyncio.timeout(self._patience.choose):
                return await begun
        except TimeoutError as error:
            raise RefusedError("it does not go on towards its goal") from error

    async def _conclude(
        self, thread: Thread, turn: Turn, native: NativeTurn, record: Params
    ) -> TurnOutcome:
        status, goal = record.get("status"), native.goal or self._hearing.goal.report()
        if turn.interrupted or status == "interrupted":
            await thread.tidy()
            return TurnOutcome(StopReason.CANCELLED, usage=native.usage, goal=goal)
        if status == "failed":
            sentence = failure(self._preset.name, record)
            return TurnOutcome(StopReason.FAILED, sentence, native.usage, goal=goal)
        return TurnOutcome(StopReason.END_TURN, usage=native.usage, goal=goal)

    def _turn_over(self) -> None:
        self._hearing.turns.release()

    # Stopping and failing

    async def _ask_to_stop(self, link: CodexLink) -> None:
        if self._thread:
            await self._thread.stop()

    async def _bury(self, turn: Turn, error: LinkLostError) -> TurnOutcome:
        try:
            return await super()._bury(turn, error)
        finally:
            await self._hearing.narrator.close_calls()

    def _failed(self, sentence: str) -> TurnOutcome:
        return TurnOutcome(StopReason.FAILED, sentence, goal=self._hearing.goal.report())

    def _refusal(self, error: RefusedError) -> str:
        return f"{self._preset.name} reported an error: {str(error).rstrip('.')}."
