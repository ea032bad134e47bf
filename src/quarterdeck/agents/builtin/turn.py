"""One turn of the built-in agent: the message's blocks, run or planned."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable

from quarterdeck.agents.builtin import changes, replies, updates
from quarterdeck.agents.builtin.blocks import Block, Parsed, parse
from quarterdeck.agents.builtin.runner import Ran, Runner
from quarterdeck.agents.builtin.sessions import Session, SessionStore
from quarterdeck.agents.builtin.ticket import check_variables
from quarterdeck.agents.builtin.updates import Update

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
        self._session.history.append(updates.user_message(message))
        await self._save()
        self._runner.variables = check_variables(message)
        try:
            await self._answer(parse(message))
        finally:
            await self._save()

    async def _answer(self, parsed: Parsed) -> None:
        if not parsed.blocks:
            await self._tell(
                updates.agent_message(await asyncio.to_thread(replies.help_text, parsed))
            )
        elif self._session.mode == "plan":
            await self._plan(parsed.blocks)
        else:
            await self._work(parsed)

    async def _plan(self, blocks: list[Block]) -> None:
        await self._tell(updates.plan(blocks))
        await self._tell(updates.agent_message(replies.planned(blocks, self._session.directory)))

    async def _work(self, parsed: Parsed) -> None:
        before = await changes.look(self._session.directory)
        runs = await self._run_all(parsed.blocks)
        if self._runner.cancelled:
            return
        after = await changes.look(self._session.directory)
        changed = await changes.describe(self._session.directory, before, after)
        text = replies.done(parsed.blocks, runs, parsed.skipped, changed)
        await self._tell(updates.agent_message(text))

    async def _run_all(self, blocks: list[Block]) -> list[Ran]:
        runs: list[Ran] = []
        for block in blocks:
            if self._runner.cancelled:
                break
            runs.append(await self._run(block))
            if runs[-1].exit_code != 0:
                break
        return runs

    async def _run(self, block: Block) -> Ran:
        call_id = str(uuid.uuid4())
        announced = updates.announced(call_id, block)
        await self._send(announced)
        await self._send(updates.started(call_id))

        async def show(text: str) -> None:
            await self._send(updates.printed(call_id, text))

        try:
            ran = await self._runner.run(block, show)
        except OSError as error:
            ran = Ran(127, 0, f"{error.strerror}: {error.filename}", False)
        await self._send(updates.ended(call_id, ran, ran.text))
        stored = updates.ended(call_id, ran, ran.text[-_STORED_OUTPUT:])
        self._session.history.append({**announced, **stored, "sessionUpdate": "tool_call"})
        return ran

    async def _tell(self, update: Update) -> None:
        await self._send(update)
        self._session.history.append(update)

    async def _save(self) -> None:
        await asyncio.to_thread(self._store.save, self._session)
