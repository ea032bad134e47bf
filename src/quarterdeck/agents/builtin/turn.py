"""One turn of the built-in agent: the message's blocks, run or planned."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from acp.helpers import (
    plan_entry,
    start_tool_call,
    text_block,
    tool_content,
    update_agent_message_text,
    update_plan,
    update_tool_call,
    update_user_message_text,
)
from acp.schema import AgentMessageChunk, AgentPlanUpdate, ToolCallProgress, ToolCallStart

from quarterdeck.agents.builtin import changes, replies
from quarterdeck.agents.builtin.blocks import Block, Parsed, parse
from quarterdeck.agents.builtin.runner import Ran, Runner
from quarterdeck.agents.builtin.sessions import Session, SessionStore

Update = AgentMessageChunk | AgentPlanUpdate | ToolCallProgress | ToolCallStart
Send = Callable[[Update], Awaitable[None]]

_STORED_OUTPUT = 8 << 10


class Turn:
    """Answers one message; what it says goes to `send` and into the session's history."""

    def __init__(self, session: Session, store: SessionStore, runner: Runner, send: Send) -> None:
        self._session = session
        self._store = store
        self._runner = runner
        self._send = send

    async def run(self, message: str) -> None:
        """Runs or plans the message's blocks; returns early when the runner is canceled."""
        self._remember(
            update_user_message_text(message).model_dump(by_alias=True, exclude_none=True)
        )
        await self._save()
        try:
            await self._answer(parse(message))
        finally:
            await self._save()

    async def _answer(self, parsed: Parsed) -> None:
        if not parsed.blocks:
            await self._say(await asyncio.to_thread(replies.help_text, parsed))
        elif self._session.mode == "plan":
            await self._plan(parsed.blocks)
        else:
            await self._work(parsed)

    async def _plan(self, blocks: list[Block]) -> None:
        await self._tell(update_plan([plan_entry(block.title) for block in blocks]))
        await self._say(replies.planned(blocks, self._session.directory))

    async def _work(self, parsed: Parsed) -> None:
        before = await changes.look(self._session.directory)
        runs: list[Ran] = []
        for block in parsed.blocks:
            if self._runner.cancelled:
                return
            runs.append(await self._run(block))
            if runs[-1].exit_code != 0:
                break
        if self._runner.cancelled:
            return
        after = await changes.look(self._session.directory)
        changed = await changes.describe(self._session.directory, before, after)
        await self._say(replies.done(parsed.blocks, runs, parsed.skipped, changed))

    async def _run(self, block: Block) -> Ran:
        call_id = str(uuid.uuid4())
        start = start_tool_call(
            call_id,
            block.title,
            kind="execute",
            status="pending",
            raw_input={"command": block.script, "shell": block.shell},
        )
        await self._send(start)
        await self._send(update_tool_call(call_id, status="in_progress"))

        async def show(text: str) -> None:
            await self._send(update_tool_call(call_id, content=_content(text)))

        try:
            ran = await self._runner.run(block, show)
        except OSError as error:
            ran = Ran(127, 0, f"{error.strerror}: {error.filename}", False)
        await self._send(_finished(call_id, ran, ran.text))
        ended = _finished(call_id, ran, ran.text[-_STORED_OUTPUT:]).model_dump(
            by_alias=True, exclude_none=True
        )
        told = start.model_dump(by_alias=True, exclude_none=True)
        self._remember({**told, **ended, "sessionUpdate": "tool_call"})
        return ran

    async def _say(self, text: str) -> None:
        await self._tell(update_agent_message_text(text))

    async def _tell(self, update: Update) -> None:
        await self._send(update)
        self._remember(update.model_dump(by_alias=True, exclude_none=True))

    def _remember(self, update: dict[str, Any]) -> None:
        self._session.history.append(update)

    async def _save(self) -> None:
        await asyncio.to_thread(self._store.save, self._session)


def _content(text: str) -> list[Any]:
    return [tool_content(text_block(text))]


def _finished(call_id: str, ran: Ran, text: str) -> ToolCallProgress:
    output: dict[str, Any] = {"exitCode": ran.exit_code, "durationMs": ran.duration_ms}
    if ran.truncated:
        output["truncated"] = True
    return update_tool_call(
        call_id,
        status="completed" if ran.exit_code == 0 else "failed",
        content=_content(text) if text else None,
        raw_output=output,
    )
