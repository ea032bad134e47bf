"""A session of codex: its thread, turns, goals and slash commands."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from quarterdeck.agents.codex.items import input_of
from quarterdeck.agents.codex.link import CodexLink, failure
from quarterdeck.agents.codex.listener import ThreadListener
from quarterdeck.agents.codex.startup import (
    MODES,
    CodexHandshake,
    Settings,
    key_to_use,
    start_process,
)
from quarterdeck.agents.codex.turns import NativeTurn
from quarterdeck.agents.objects import as_list, as_object
from quarterdeck.agents.port import (
    AgentDiedError,
    AgentError,
    AgentSession,
    AgentSink,
    AgentUnavailableError,
    GoalWish,
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
from quarterdeck.wire.chats import ChatSettings
from quarterdeck.wire.history import AgentEventType

Params = dict[str, Any]

_TIDY_SECONDS = 2.0
"""For codex to report the ends of commands that it was made to stop."""


class CodexThread:
    """One thread on one link; every method may raise what the link's requests raise."""

    def __init__(
        self, link: CodexLink, id: str, listener: ThreadListener, timeouts: Timeouts
    ) -> None:
        self.id = id
        self._link = link
        self._listener = listener
        self._timeouts = timeouts

    async def learn_goal(self) -> None:
        """Request the current goal."""
        answer = await self._link.request("thread/goal/get", {"threadId": self.id})
        self._listener.goal.follow(answer.get("goal"))

    async def align(self, wish: GoalWish) -> None:
        """Set the goal according to the wish."""
        goal = self._listener.goal
        change = goal.change(wish)
        if change is not None:
            await self._set_goal(change, replace_goal=not goal.matches(wish))

    async def pause_goal(self) -> None:
        """Stop codex from starting another turn."""
        if self._listener.goal.active:
            await self._set_goal({"status": "paused"}, replace_goal=False)

    async def work_on(self, wish: GoalWish) -> None:
        """Make codex continue towards the goal, even after it has stopped."""
        goal = self._listener.goal
        change = goal.change(wish) or {"status": "active"}
        await self._set_goal(change, replace_goal=not goal.matches(wish))

    async def _set_goal(self, change: Params, replace_goal: bool) -> None:
        goal = self._listener.goal
        if replace_goal and goal.exists:  # its counts would continue
            await self._link.request("thread/goal/clear", {"threadId": self.id})
        params = {"threadId": self.id, **change}
        await self._link.request("thread/goal/set", params, lambda a: goal.follow(a.get("goal")))

    async def stop(self) -> None:
        """Interrupt our turn. The goal is paused first: codex would start the next turn at once."""
        self._listener.keep_open = True
        try:
            await self.pause_goal()
            ours = self._listener.turns.ours
            if ours is not None and not ours.ended.done():
                await self._interrupt(ours)
        except (RefusedError, LinkLostError):
            return  # it has just ended

    async def stop_running(self) -> None:
        """End a turn that codex started on its own; its goal stays active."""
        running = self._listener.turns.running
        if running is None:
            return
        with suppress(RefusedError):  # it may be ending at this moment
            await self._interrupt(running)
        async with asyncio.timeout(self._timeouts.cancel):
            await asyncio.shield(running.ended)
        await self.tidy()

    async def tidy(self) -> None:
        """End the commands of an interrupted turn, which codex leaves running."""
        with suppress(RefusedError, TimeoutError):  # then they are reported as failed
            async with asyncio.timeout(_TIDY_SECONDS):
                await self._link.request("thread/backgroundTerminals/clean", {"threadId": self.id})
                await self._listener.narrator.calls_closed()
        await self._link.end_commands()
        await self._listener.narrator.close_calls()

    async def _interrupt(self, native: NativeTurn) -> None:
        await self._link.request("turn/interrupt", {"threadId": self.id, "turnId": native.id})


class CodexSession(ProcessSession[CodexLink]):
    """One codex process with one thread."""

    def __init__(
        self, preset: Preset, timeouts: Timeouts, spec: SessionSpec, sink: AgentSink
    ) -> None:
        super().__init__(preset, timeouts, spec, sink)
        self._key: str | None = None
        self._listener = ThreadListener(self._recorder, self._requests)
        self._settings = Settings(self._list_models)
        self._commands = CodexCommands()
        self._thread: CodexThread | None = None

    async def start(self) -> AgentProcess:
        """Start codex's process; see `ProcessSession`."""
        self._key = await asyncio.to_thread(key_to_use, self._preset, self._spec)
        return await start_process(self._preset, self._spec, self._key)

    @property
    def models(self) -> ModelOffer | None:
        """The announced models; see the port."""
        return self._settings.offer

    @property
    def settings(self) -> ChatSettings:
        """The announced settings; see the port."""
        return self._settings.announced

    async def set_permission_mode(self, mode: str) -> None:
        """Change the permission mode; see the port. A thread in plan mode keeps its own until then.

        Raises:
            AgentError: there is no such mode, or codex did not accept it.
        """
        if mode not in MODES:
            raise AgentError(f"{self._preset.name} has no permission mode {mode}.")
        change = self._settings.modes.settings_for(mode)
        if not change or self._link is None or not self._link.usable or self._settings.planning:
            return
        try:
            async with asyncio.timeout(self._timeouts.choose):
                params = {"threadId": self.id, **change}
                await self._link.request("thread/settings/update", params)
        except (RefusedError, LinkLostError, TimeoutError) as error:
            raise AgentError(f"{self._preset.name} refused the mode: {error!r}.") from error
        self._settings.modes.chosen(mode)

    async def change_goal(self, wish: GoalWish) -> None:
        """Set codex's goal according to the wish; without a process, the next turn sets it.

        Raises:
            AgentError: codex did not accept it.
        """
        if self._link is None or not self._link.usable or self._thread is None:
            return
        try:
            async with asyncio.timeout(self._timeouts.choose):
                await self._thread.align(wish)
                if not wish.active and self._listener.turns.unasked:
                    await self._thread.stop_running()
        except (RefusedError, LinkLostError, TimeoutError) as error:
            raise AgentError(f"{self._preset.name} refused the goal: {error!r}.") from error

    async def steer(self, prompt: Prompt, taken: Callable[[], None]) -> None:
        """Put a message into the running turn; see the port.

        Raises:
            AgentDiedError: codex ended, and may have had the message.
            AgentError: codex did not take it.
        """
        name, _ = self._commands.read(prompt.text)
        if name in (COMPACT, REVIEW, INIT):
            raise AgentError(f"/{name} needs a turn of its own.")
        link, ours = self._link, self._listener.turns.ours
        if link is None or ours is None or ours.ended.done():
            raise AgentError("The turn is just beginning or ending.")
        params = {"threadId": self.id, "expectedTurnId": ours.id, "input": self._input_of(prompt)}
        try:
            await link.request("turn/steer", params, lambda _: taken())
        except RefusedError as error:
            raise AgentError(f"{self._preset.name} did not take the message: {error}.") from error
        except LinkLostError as error:
            raise AgentDiedError(await link.exit_reason()) from error

    # Opening

    def _connect(self, process: AgentProcess) -> CodexLink:
        self._thread = None
        self._listener = ThreadListener(self._recorder, self._requests)
        return CodexLink(self._preset.name, process, self._recorder.activity, self._listener)

    async def _shake_hands(self, link: CodexLink) -> None:
        listener = self._listener
        handshake = CodexHandshake(self._preset, link, self._spec, self._key, listener.opened)
        try:
            opened = await handshake.run()
        except AgentUnavailableError as error:
            warned = "".join(f" It warned: {warning}" for warning in listener.narrator.warnings)
            raise AgentUnavailableError(f"{error}{warned}") from error
        self._spec = replace(self._spec, session_id=opened.thread_id)
        self._settings.opened(opened.answer)
        self._thread = CodexThread(link, opened.thread_id, listener, self._timeouts)
        await self._thread.learn_goal()
        await self._learn_choices(link)
        if opened.forgotten:
            await listener.narrator.remark(
                f"The earlier session could not be reopened ({opened.forgotten}); "
                "this one starts afresh."
            )
        if opened.left_out:
            names = ", ".join(opened.left_out)
            await listener.narrator.remark(
                f"{self._preset.name} cannot use these MCP servers: {names}."
            )

    async def _learn_choices(self, link: CodexLink) -> None:
        """Ask for the models and skills, and announce the commands."""
        with suppress(RefusedError):  # a list that cannot be had is empty
            await self._settings.load()
        with suppress(RefusedError):
            directories = {"cwds": [self._spec.working_directory]}
            self._commands.take_skills(await link.request("skills/list", directories))
        await self._recorder.record(AgentEventType.SESSION_UPDATE, self._commands.update)

    async def _list_models(self) -> Params:
        assert self._link is not None
        return await self._link.request("model/list", {"includeHidden": True})

    # A turn

    async def _take_turn(self, prompt: Prompt, turn: EngineTurn) -> TurnOutcome:
        self._listener.keep_open = False
        link = await self._usable_link()
        thread = self._thread
        assert thread is not None
        if turn.interrupted:
            return CANCELLED
        self._listener.narrator.planned = False
        native = await self._begin(link, thread, prompt)
        if native is None:
            return TurnOutcome(StopReason.END_TURN, goal=self._listener.goal.report())
        if turn.interrupted:  # the interrupt came before there was a turn to stop
            await thread.stop()
        async with self._watched(link):
            record = await native.ended
        return await self._conclude(thread, turn, native, record)

    async def _begin(
        self, link: CodexLink, thread: CodexThread, prompt: Prompt
    ) -> NativeTurn | None:
        """Return the turn for the prompt; None when the goal needs no further one."""
        turns, wish = self._listener.turns, prompt.goal
        if prompt.continuation:
            return turns.take_unasked() or await self._go_on(thread, wish)
        # Codex may be about to start its next turn, which would be mistaken for ours.
        await thread.pause_goal()
        if turns.running is not None:  # the user's message goes first
            await thread.stop_running()
        turns.forget_unasked()
        if wish is None:
            return await self._send_prompt(link, prompt)
        if not wish.fresh:
            await thread.align(replace(wish, active=wish.active and self._listener.goal.active))
        elif self._is_goal_alone(prompt, wish):
            return await self._work(link, thread, prompt)
        native = await self._send_prompt(link, prompt)
        if wish.fresh:
            await thread.align(wish)
        return native

    def _is_goal_alone(self, prompt: Prompt, wish: GoalWish) -> bool:
        """Return whether the goal covers the whole message, so that it is sent once."""
        more = prompt.images or prompt.fast_mode or self._settings.plans(prompt)
        return wish.active and prompt.text == wish.objective and not more

    async def _send_prompt(self, link: CodexLink, prompt: Prompt) -> NativeTurn:
        name, rest = self._commands.read(prompt.text)
        if name in (COMPACT, REVIEW):
            return await self._run_command(link, name, rest)
        settings = await self._settings.turn_settings(prompt)
        if name == INIT:
            prompt = replace(prompt, text=INIT_PROMPT)
        speed = await self._settings.speed(prompt)
        params = {"threadId": self.id, "input": self._input_of(prompt), **settings, **speed}
        native = await self._start_turn(link, "turn/start", params)
        self._settings.chosen(prompt, settings)
        return native

    def _input_of(self, prompt: Prompt) -> list[Params]:
        skill = self._commands.skill_input(*self._commands.read(prompt.text))
        images = input_of(replace(prompt, text="")) if prompt.images else []
        return input_of(prompt) if skill is None else [*skill, *images]

    async def _run_command(self, link: CodexLink, name: str, rest: str) -> NativeTurn:
        """Start one of codex's own commands, which runs as a turn."""
        if name == REVIEW:
            target = self._commands.review_target(rest)
            params = {"threadId": self.id, "target": target, "delivery": "inline"}
            return await self._start_turn(link, "review/start", params)
        next_turn = self._listener.turns.next_turn()
        await link.request("thread/compact/start", {"threadId": self.id})
        return await next_turn

    async def _start_turn(self, link: CodexLink, method: str, params: Params) -> NativeTurn:
        adopted: list[NativeTurn] = []

        def adopt(answer: Params) -> None:
            adopted.append(self._listener.turns.adopt(str(as_object(answer.get("turn")).get("id"))))

        await link.request(method, params, adopt)
        return adopted[0]

    async def _work(self, link: CodexLink, thread: CodexThread, prompt: Prompt) -> NativeTurn:
        """Start to work towards a goal."""
        assert prompt.goal is not None
        settings = await self._settings.turn_settings(prompt)
        if settings:
            await link.request("thread/settings/update", {"threadId": self.id, **settings})
            self._settings.chosen(prompt, settings)
        next_turn = self._listener.turns.next_turn()
        await thread.align(prompt.goal)
        return await next_turn

    async def _go_on(self, thread: CodexThread, wish: GoalWish | None) -> NativeTurn | None:
        """Return the next turn towards the goal, started here when codex has stopped."""
        if wish is None:
            raise RefusedError("there is no goal to go on with")
        next_turn = self._listener.turns.next_turn()
        await thread.work_on(wish)
        if not self._listener.goal.active:
            return None
        try:
            async with asyncio.timeout(self._timeouts.choose):
                return await next_turn
        except TimeoutError as error:
            raise RefusedError("it does not go on towards its goal") from error

    async def _conclude(
        self, thread: CodexThread, turn: EngineTurn, native: NativeTurn, record: Params
    ) -> TurnOutcome:
        status, goal = record.get("status"), native.goal or self._listener.goal.report()
        if turn.interrupted or status == "interrupted":
            await thread.tidy()
            return TurnOutcome(StopReason.CANCELLED, usage=native.usage, goal=goal)
        if status == "failed":
            sentence = failure(self._preset.name, record)
            return TurnOutcome(StopReason.FAILED, sentence, native.usage, goal=goal)
        planned = self._listener.narrator.planned
        return TurnOutcome(StopReason.END_TURN, usage=native.usage, goal=goal, planned=planned)

    def _turn_over(self) -> None:
        self._listener.turns.release()

    # Stopping and failing

    async def _ask_to_stop(self, link: CodexLink) -> None:
        if self._thread:
            await self._thread.stop()

    async def _handle_exit(self, turn: EngineTurn, error: LinkLostError) -> TurnOutcome:
        try:
            return await super()._handle_exit(turn, error)
        finally:
            await self._listener.narrator.close_calls()

    def _failed(self, sentence: str) -> TurnOutcome:
        return TurnOutcome(StopReason.FAILED, sentence, goal=self._listener.goal.report())

    def _refusal(self, error: RefusedError) -> str:
        return f"{self._preset.name} reported an error: {str(error).rstrip('.')}."


class CodexDriver:
    """Implements `AgentDriver` for a preset that speaks codex's app-server protocol."""

    def __init__(self, preset: Preset, timeouts: Timeouts | None = None) -> None:
        self._preset = preset
        self._timeouts = timeouts or Timeouts()

    async def open(self, spec: SessionSpec, sink: AgentSink) -> AgentSession:
        """Start codex and open, or reopen, a thread.

        When codex no longer knows `spec.session_id`, a new thread is opened, and a line in the
        next turn says so.

        Raises:
            AgentUnavailableError: not installed, no key, or it did not start.
        """
        session = CodexSession(self._preset, self._timeouts, spec, sink)
        await session.open(await session.start())
        return session


COMPACT, REVIEW, INIT = "compact", "review", "init"
_OWN = (
    (COMPACT, "Summarize the conversation, so that less of the context is used.", None),
    (REVIEW, "Review the uncommitted changes, or what is asked for.", "what to review"),
    (INIT, "Write AGENTS.md with instructions for agents.", None),
)
INIT_PROMPT = """\
Write a file AGENTS.md at the top of this repository that tells a contributor what to know before \
changing it: how it is structured, how to build, run and test it, its code style and naming, and how \
commits and pull requests look. Read the repository first, and state only what holds for it. Be \
concise: a few hundred words, with short sections and the commands to run. If the file exists \
already, improve it."""
_LONGEST_DESCRIPTION = 200


class CodexCommands:
    """The slash commands of a session: codex's own that its app-server carries out, and skills."""

    def __init__(self) -> None:
        self._skills: dict[str, Params] = {}

    def take_skills(self, answer: Params) -> None:
        """Note the answer of `skills/list`."""
        entries = map(as_object, as_list(answer.get("data")))
        skills = [as_object(skill) for entry in entries for skill in as_list(entry.get("skills"))]
        own = {name for name, _, _ in _OWN}
        self._skills = {
            str(skill.get("name")): skill
            for skill in skills
            if skill.get("enabled") and skill.get("path") and str(skill.get("name")) not in own
        }

    @property
    def update(self) -> Params:
        """The session update that announces them."""
        own = [
            {
                "name": name,
                "description": description,
                **({"input": {"hint": hint}} if hint else {}),
            }
            for name, description, hint in _OWN
        ]
        skills = [
            {"name": name, "description": _description(skill), "input": {"hint": "task"}}
            for name, skill in self._skills.items()
        ]
        return {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [*own, *skills],
        }

    @staticmethod
    def read(text: str) -> tuple[str, str]:
        """Return the command that a message begins with, empty for none, and the rest."""
        first, _, rest = text.strip().partition(" ")
        return (first.removeprefix("/"), rest.strip()) if first.startswith("/") else ("", text)

    def skill_input(self, name: str, rest: str) -> list[Params] | None:
        """Return the input that uses a skill; None when there is none of this name."""
        skill = self._skills.get(name)
        if skill is None:
            return None
        text: Params = {"type": "text", "text": f"${name} {rest}".strip(), "text_elements": []}
        return [{"type": "skill", "name": name, "path": skill["path"]}, text]

    @staticmethod
    def review_target(rest: str) -> Params:
        """Return what `/review` looks at."""
        return {"type": "custom", "instructions": rest} if rest else {"type": "uncommittedChanges"}


def _description(skill: Params) -> str:
    short = as_object(skill.get("interface")).get("shortDescription") or skill.get("description")
    return str(short or "")[:_LONGEST_DESCRIPTION]
