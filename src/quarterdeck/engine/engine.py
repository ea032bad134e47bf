"""Puts the parts of an engine together and names their methods.

link -> Connection -> Methods -> Chats | Terminals | Repos | exec
                                    |        |         |
                                    +--- Journal ------+ -> every link that follows it
"""

import asyncio
import logging
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from quarterdeck import __version__
from quarterdeck.engine.agent_session import AgentPlace, CatalogFactory
from quarterdeck.engine.canvas import CanvasDirectory
from quarterdeck.engine.chat_commands import EngineChatCommands, QueueChanges
from quarterdeck.engine.chat_state import ChatFold
from quarterdeck.engine.chats import ChatRegistry, Counts
from quarterdeck.engine.exec import run_command, stream_command
from quarterdeck.engine.files import RepositoryFiles
from quarterdeck.engine.git import read_repository
from quarterdeck.engine.git_operations import read_diffs
from quarterdeck.engine.journal import Journal, Line, event
from quarterdeck.engine.redaction import Redactor
from quarterdeck.engine.rpc import Method, parse
from quarterdeck.engine.setup.boot import Boot
from quarterdeck.engine.setup.hooks import SetupMemory, rests
from quarterdeck.engine.tasks import TaskOwner
from quarterdeck.engine.terminals import TerminalRegistry
from quarterdeck.wire.engine import (
    Answer,
    AskPerson,
    CancelQueued,
    CanvasCall,
    ChangeGoal,
    ChangeSettings,
    ChatCall,
    DeleteEngineChat,
    DeliverMessage,
    EngineConfig,
    EngineHello,
    EngineReport,
    GiveNotice,
    JoinQueued,
    OpenChat,
    OrderQueue,
    ReadFile,
    RenameEngineChat,
    ShutDown,
    SteerQueued,
    StreamCommand,
    StreamTerminal,
    TerminalCall,
    TerminalFrame,
    WriteCanvas,
)
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EngineReady, ErrorEvent, EventType
from quarterdeck.wire.git_state import EngineRepository, ReposChanged
from quarterdeck.wire.permissions import Permissions
from quarterdeck.wire.setup import ClaimWorkspace
from quarterdeck.wire.terminals import (
    CreateTerminal,
    ExecRequest,
    ExecResponse,
    ResizeTerminal,
    TerminalInput,
)

QUIET_SECONDS = 1.0
"""Repositories are read once activity has stopped for this long,"""


RESTLESS_SECONDS = 10.0
"""or during activity, this often at most, and for at most a tenth of the time."""


class Repos:
    """The state of the configuration's repositories. Without any, nothing is read.

    They are read only after activity. One read runs at a time; requests meanwhile wait for the next.
    """

    def __init__(
        self,
        repositories: Sequence[EngineRepository],
        environment: Mapping[str, str],
        journal: Journal,
        tasks: TaskOwner,
        start_hooks_completed: Callable[[], bool] = lambda: True,
    ) -> None:
        self._repositories = repositories
        self._environment = environment
        self._journal = journal
        self._tasks = tasks
        self._start_hooks_completed = start_hooks_completed
        self._known: ReposChanged | None = None
        self._reading: asyncio.Task[ReposChanged] | None = None
        self._next_reading: asyncio.Task[ReposChanged] | None = None
        self._cost = 0.0
        self._read_at = 0.0
        self._active_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._clock = asyncio.get_running_loop().time

    def __len__(self) -> int:
        return len(self._repositories)

    async def refresh(self) -> ReposChanged:
        """Read now; return the result of a read that started after this call."""
        if self._reading is None or self._reading.done():
            self._reading = self._start()
            return await asyncio.shield(self._reading)
        if self._next_reading is None or self._next_reading.done():
            self._next_reading = self._tasks.start(
                self._after(self._reading), "repositories, once more"
            )
        return await asyncio.shield(self._next_reading)

    def changed(self) -> None:
        """Read the repositories once activity stops. Cheap, may be called often."""
        self._active_at = self._clock()
        if self._timer is None and self._repositories:
            self._arm(QUIET_SECONDS)

    def close(self) -> None:
        """Stop waiting for activity to stop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._quiet)

    def _quiet(self) -> None:
        self._timer = None
        now = self._clock()
        quiet = now - self._active_at >= QUIET_SECONDS * 0.9
        since = now - self._read_at
        if since < 10 * self._cost or (not quiet and since < RESTLESS_SECONDS):
            self._arm(QUIET_SECONDS)
        else:
            self._tasks.start(self.refresh(), "repositories after activity")

    def _start(self) -> asyncio.Task[ReposChanged]:
        return self._tasks.start(self._read_all(), "repositories")

    async def _after(self, running: asyncio.Task[ReposChanged]) -> ReposChanged:
        await asyncio.wait({running})
        self._reading, self._next_reading = self._start(), None
        return await asyncio.shield(self._reading)

    async def _read_all(self) -> ReposChanged:
        began = self._clock()
        completed = self._start_hooks_completed()
        state = ReposChanged(
            repos=[
                await read_repository(repository, self._environment, hooks_completed=completed)
                for repository in self._repositories
            ]
        )
        self._read_at = self._clock()
        self._cost = self._read_at - began
        if state != self._known:
            previous, self._known = self._known, state
            type = EventType.REPO_STATUS_CHANGED if previous else EventType.REPO_DISCOVERED
            await self._journal.append(event(type, state))
        return state


logger = logging.getLogger(__name__)

STOP_SECONDS = 8.0
"""How long turns and terminals may take to end when the engine ends."""

_Params = TypeVar("_Params", bound=BaseModel)


class Engine:
    """The parts of one running engine. Created with `open`, ended with `close`."""

    def __init__(
        self,
        config: EngineConfig,
        journal: Journal,
        fold: ChatFold,
        memory: SetupMemory,
        catalog: CatalogFactory,
        now: Callable[[], float],
        restored: str | None,
    ) -> None:
        workspace = Path(config.workspace_dir)
        state = Path(config.state_dir)
        environment = {**os.environ, **config.environment}
        home = _home_of_work(config)
        self._boot = Boot(config, environment, journal, memory)
        self._memory = memory
        journal.hide = Redactor(self._boot.credentials)
        self._permissions = config.permissions
        place = AgentPlace(
            catalog,
            home,
            state / "agents",
            environment,
            self._boot.credentials,
            config.setup.mcp_servers,
            own_agents=config.agents,
            isolated=config.isolation != "none",
            repositories=config.repositories,
            co_author=config.setup.co_author,
            system_prompt=config.setup.system_prompt,
            permissions=lambda: self._permissions,
            workspace=workspace,
        )
        self._config = config
        self._restored = restored
        self._workspace = workspace
        self._home_of_work = home
        self._environment = environment
        self._journal = journal
        self._tasks = TaskOwner()
        self._booted_at = int(time.time() * 1000)
        self._counts = Counts(len(config.repositories), lambda: journal.subscribers, now)
        self._repos = Repos(
            config.repositories,
            environment,
            journal,
            self._tasks,
            lambda: self._boot.start_hooks_completed,
        )
        self._files = RepositoryFiles(config.repositories, environment)
        self._canvas = CanvasDirectory(Path(environment.get("HOME") or home), state)
        self._terminals = TerminalRegistry(home, environment, self._note_activity)
        self._chats = ChatRegistry(
            fold,
            place,
            journal,
            self._note_activity,
            self._counts.news,
            config.hold_queues,
            restored,
        )
        self._commands = EngineChatCommands(self._chats, journal, place.state_directory)
        self._queue_changes = QueueChanges(self._chats, journal)
        self.ending = asyncio.Event()
        """Set when the engine is to end."""
        self._by_request = False
        self.table = self._methods()

    @classmethod
    async def open(
        cls,
        config: EngineConfig,
        catalog: CatalogFactory,
        now: Callable[[], float] = time.monotonic,
        restored: str | None = None,
    ) -> "Engine":
        """Read the journal and continue where the last engine of this workspace ended.

        `now` counts seconds; the engine measures with it how long it has been idle. `restored` says
        what was just restored from a save, for a person.

        Raises:
            OSError: the state directory cannot be used.
        """
        fold, memory = ChatFold(), SetupMemory()

        def visit(type: str, line: bytes) -> None:
            fold.visit(type, line)
            memory.visit(type, line)

        journal = await Journal.open(Path(config.state_dir), visit, config.known_index)
        if journal.lost_end:
            fold.lost_end()
        return cls(config, journal, fold, memory, catalog, now, restored)

    def start(self) -> None:
        """Set the workspace up; then continue the queues and report that the engine is ready."""
        self._tasks.start(self._get_ready(), "engine ready")

    async def close(self) -> None:
        """End turns, agents, terminals and commands, and write the journal's last entries."""
        self._repos.close()
        ending = TaskOwner()
        ending.start(self._chats.stop(self._by_request), "ending chats")
        ending.start(self._terminals.close_all(), "ending terminals")
        await ending.wait(STOP_SECONDS)
        await ending.close()
        await self._tasks.close()
        self._boot.close()
        await self._journal.close()

    # Decided without a service

    @property
    def unused(self) -> bool:
        """Whether a service would have put it to sleep by now."""
        limit = self._config.auto_stop_seconds
        if limit is None or self._counts.idle_seconds < limit:
            return False
        return not (self._chats.working or self._boot.hooks_running or self._terminals.attached)

    async def fall_asleep(self) -> None:
        """End as if put to sleep. The next engine knows that this one was not in use.

        Raises:
            JournalError: this cannot be written; the engine continues.
        """
        await self._journal.append(rests(asleep=True), durable=True, refusable=True)
        logger.info("ending: the workspace was not used")
        self.ending.set()

    # Used by connections

    def hello(self) -> EngineHello:
        return EngineHello(
            version=__version__,
            workspace_id=self._config.workspace_id,
            last_index=self._journal.last_index,
            boot_time_ms=self._booted_at,
            pid=os.getpid(),
            setup=self._boot.state,
        )

    def journal(self, after: int) -> AsyncGenerator[list[Line], None]:
        return self._journal.follow(after)

    def watch(self, request: StreamTerminal) -> AsyncGenerator[TerminalFrame, None]:
        return self._terminals.watch(request.session_id, request.offset)

    def output(self, request: StreamCommand) -> AsyncGenerator[bytes, None]:
        # Without the variables of the configuration, which could change what a program does.
        return stream_command(request, os.environ)

    # Methods

    def _methods(self) -> dict[str, Method]:
        chats, terminals = self._chats, self._terminals
        return {
            "status": Method(self._status),
            "shutdown": Method(_taking(ShutDown, self._shutdown)),
            "exec": Method(_taking(ExecRequest, self._exec), lasting=False),
            "terminal.list": Method(self._terminal_list),
            "terminal.create": Method(_taking(CreateTerminal, terminals.create)),
            "terminal.input": Method(self._terminal_input, lasting=False),
            "terminal.resize": Method(self._terminal_resize),
            "terminal.close": Method(_taking(TerminalCall, self._terminal_close)),
            "chat.open": Method(_taking(OpenChat, chats.open)),
            "chat.send": Method(_taking(DeliverMessage, self._chat_send)),
            **self._chat_commands(),
            "canvas.list": Method(lambda _: self._canvas.list()),
            "canvas.get": Method(_taking(CanvasCall, self._canvas.get)),
            "canvas.put": Method(_taking(WriteCanvas, self._canvas.put)),
            "permissions.set": Method(_taking(Permissions, self._set_permissions)),
            "workspace.claim": Method(_taking(ClaimWorkspace, self._boot.claim)),
            "files.index": Method(lambda _: self._files.index(), lasting=False),
            "files.read": Method(_taking(ReadFile, self._files.read)),
            "repos.refresh": Method(lambda _: self._repos.refresh()),
            "repos.diffs": Method(
                lambda _: read_diffs(self._config.repositories, self._environment), lasting=False
            ),
        }

    def _chat_commands(self) -> dict[str, Method]:
        commands = self._commands
        return {
            "chat.rename": Method(_taking(RenameEngineChat, commands.rename)),
            "chat.interrupt": Method(_taking(ChatCall, commands.interrupt)),
            "chat.respond": Method(_taking(Answer, self._chat_respond)),
            "chat.ask": Method(_taking(AskPerson, commands.ask), lasting=False),
            "chat.notice": Method(_taking(GiveNotice, commands.notice)),
            "chat.goal": Method(_taking(ChangeGoal, commands.goal)),
            "chat.settings": Method(_taking(ChangeSettings, commands.settings)),
            "chat.delete": Method(_taking(DeleteEngineChat, commands.delete)),
            "queue.cancel": Method(_taking(CancelQueued, commands.cancel)),
            "queue.order": Method(_taking(OrderQueue, commands.order)),
            "queue.steer": Method(_taking(SteerQueued, self._queue_changes.steer)),
            "queue.join": Method(_taking(JoinQueued, self._queue_changes.join)),
            "queue.held": Method(lambda _: commands.held()),
            "queue.release": Method(lambda _: commands.release()),
        }

    async def _status(self, _: dict[str, Any] | None) -> EngineReport:
        status = self._counts.status(self._chats.total, self._chats.processing)
        status.hooks_running = self._boot.hooks_running
        return EngineReport(
            **status.model_dump(by_alias=False),
            chats_held_back=self._chats.held_back,
            terminals=self._terminals.running,
            terminals_attached=self._terminals.attached,
            idle_seconds=self._counts.idle_seconds,
            journal_fault=self._journal.fault,
            setup=self._boot.state,
        )

    async def _shutdown(self, call: ShutDown) -> None:
        self._by_request = call.by_request
        self.ending.set()

    async def _exec(self, request: ExecRequest) -> ExecResponse:
        self._counts.touch()
        try:
            directory = self._home_of_work if request.in_repository else self._workspace
            return await run_command(request, directory, self._environment)
        finally:
            self._note_activity()

    async def _terminal_list(self, _: dict[str, Any] | None) -> BaseModel:
        return self._terminals.list()

    async def _terminal_input(self, params: dict[str, Any] | None) -> None:
        session = parse(TerminalCall, params).session_id
        await self._terminals.type(session, parse(TerminalInput, params))
        self._counts.touch()

    async def _terminal_resize(self, params: dict[str, Any] | None) -> None:
        session = parse(TerminalCall, params).session_id
        self._terminals.resize(session, parse(ResizeTerminal, params))

    async def _terminal_close(self, call: TerminalCall) -> None:
        await self._terminals.close(call.session_id)

    async def _chat_send(self, message: DeliverMessage) -> BaseModel:
        self._counts.touch()
        return await self._chats.send(message)

    async def _chat_respond(self, answer: Answer) -> BaseModel:
        # Until the service receives the outcome, it counts the chat as waiting.
        self._counts.touch()
        return await self._commands.respond(answer)

    async def _set_permissions(self, permissions: Permissions) -> None:
        self._permissions = permissions
        await self._chats.review_questions()

    # Inside

    async def _get_ready(self) -> None:
        if self._memory.asleep:
            self._counts.rested(self._config.auto_stop_seconds or 0)
            await self._journal.append(rests(asleep=False))
        if self._journal.lost_lines or self._journal.lost_end:
            message = self._restored or _loss(self._journal)
            lost = ErrorEvent(code=ErrorCode.INTERNAL_ERROR, message=message)
            await self._journal.append(event(EventType.ERROR, lost), durable=True)
        if not await self._boot.run():
            return
        self._chats.start()
        await self._journal.append(
            event(EventType.ENGINE_READY, EngineReady(version=__version__)), durable=True
        )
        await self._repos.refresh()

    def _note_activity(self) -> None:
        self._counts.touch()
        self._repos.changed()


def _loss(journal: Journal) -> str:
    parts: list[str] = []
    if journal.lost_lines:
        parts.append(f"{journal.lost_lines} of its lines could not be read")
    if journal.lost_end:
        parts.append("its newest entries are missing")
    return (
        f"The replica's journal was damaged: {' and '.join(parts)}. What is shown here stays, but an"
        " agent may have forgotten the last part of its chat."
    )


def _taking(
    model: type[_Params], handler: Callable[[_Params], Awaitable[BaseModel | None]]
) -> Callable[[dict[str, Any] | None], Awaitable[BaseModel | None]]:
    async def call(params: dict[str, Any] | None) -> BaseModel | None:
        return await handler(parse(model, params))

    return call


def _home_of_work(config: EngineConfig) -> Path:
    """Return where agents and terminals start: in the only repository, else above all of them."""
    match config.repositories:
        case [only]:
            return Path(only.path)
        case _:
            return Path(config.workspace_dir)
