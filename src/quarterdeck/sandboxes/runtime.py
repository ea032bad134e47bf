"""Starts, finds and stops the processes of a workspace."""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quarterdeck.local.processes import ProcessRef, boot_id, find, is_running, send
from quarterdeck.sandboxes import processes
from quarterdeck.sandboxes.bubblewrap import NOTHING, VisiblePaths
from quarterdeck.sandboxes.cgroups import ControlGroups
from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.launch import ForkServer, Launchers, LaunchSpec, spawn
from quarterdeck.sandboxes.layout import Places, open_new_log, read_tail
from quarterdeck.sandboxes.link import listener_of
from quarterdeck.sandboxes.mirrors import Mirrors
from quarterdeck.sandboxes.port import Size
from quarterdeck.sandboxes.record import (
    Mode,
    SandboxRecord,
    load_book,
    load_record,
    read_status,
    store_record,
)
from quarterdeck.sandboxes.sandbox import CommandOverrides, Confinement, describe
from quarterdeck.wire.engine import SOCKET_NAME

LOG_NAME = "engine.log"
_STEP = 0.01
_END_SECONDS = 10.0
_SWEEPS = 50
_ANCESTORS = 8

log = logging.getLogger(__name__)


@dataclass
class Runtime:
    """The running sandboxes of an installation.

    The running processes are known from a record on disk and from `/proc`, never from memory
    alone: a later service knows as much. Only a start needs the confinement, and space on the disk.
        `engine` is the command to which `--run-dir DIR` is added; `shown` finds,
    in a thread, the user's programs that sandboxes see from their next start.
    """

    mirrors: Mirrors
    engine: Sequence[str]
    start_limit: float
    grace: float
    shown: Callable[[], VisiblePaths]
    groups: ControlGroups
    fork_server: ForkServer
    launchers: Launchers = field(default_factory=Launchers, init=False)
    _children: set[int] = field(default_factory=set[int], init=False)

    async def start(self, places: Places, confinement: Confinement, size: Size) -> None:
        """Start the engine unless it runs, and return when its socket answers.

        Raises:
            SandboxError: it did not come up.
            OSError: a file of the start could not be written.
        """
        if await self.alive(places):
            return
        await self.stop(places)
        if not places.run.is_dir():
            raise SandboxError("The workspace has no files yet; it has to be provisioned first.")
        log_file = await asyncio.to_thread(open_new_log, places.run / LOG_NAME, confinement.user)
        try:
            await self._launch(places, confinement, size, log_file)
        except BaseException:
            await self._end(places)
            raise
        finally:
            os.close(log_file)

    async def open_process(
        self,
        places: Places,
        confinement: Confinement,
        command: Sequence[str],
        overrides: CommandOverrides,
    ) -> asyncio.subprocess.Process:
        """Start a command in the workspace's sandbox, with or without a running engine.

        `stop` ends it, too. The caller waits for it, and ends it.
        """
        return await self.launchers.open_process(
            await asyncio.to_thread(self._describe, places, confinement, command, None, overrides)
        )

    async def alive(self, places: Places) -> bool:
        """Return whether the engine runs; one that is not in the record is found by its socket."""
        self._reap()
        record = _valid_record(places)
        if record and record.engine and is_running(record.engine):
            return True
        return await self._adopt(places) is not None

    async def stop(self, places: Places) -> None:
        """End every process of the sandbox: with SIGTERM first, then killed."""
        record = _valid_record(places) or await self._adopt(places)
        if record and record.engine:
            send(record.engine, signal.SIGTERM)
            await processes.wait_for_end(record.engine, self.grace)
        await self._end(places)

    async def _launch(
        self, places: Places, confinement: Confinement, size: Size, log_file: int
    ) -> None:
        engine = [*self.engine, "--run-dir", confinement.layout(places).run_dir]
        spec = await asyncio.to_thread(self._describe, places, confinement, engine, size)
        places.status.unlink(missing_ok=True)  # a damaged one may be a pipe
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        status = os.open(places.status, flags, 0o600)
        try:
            outer = await self.fork_server.start(spec, log_file, status)
            if outer is None:
                os.truncate(status, 0)
                outer = spawn(spec, log_file, status)
                self._children.add(outer)
        finally:
            os.close(status)
        await self._wait_for_socket(places, confinement.mode, outer, log_file)

    def _describe(
        self,
        places: Places,
        confinement: Confinement,
        command: Sequence[str],
        size: Size | None,
        overrides: CommandOverrides | None = None,
    ) -> LaunchSpec:
        """Return the launch of a command; without a size the bounds of a running engine stay."""
        book = load_book(places.clones)
        mirrors = {
            self.mirrors.path(repository_id).name: self.mirrors.objects(repository_id)
            for repository_id, entry in book.clones.items()
            if entry.objects and self.mirrors.objects(repository_id).is_dir()
        }
        shown = NOTHING if overrides else self.shown()
        groups = self.groups.enter(places.mark, size) if confinement.grouped else ()
        return describe(
            confinement, places, command, mirrors, book, shown, overrides, size or "large", groups
        )

    async def _wait_for_socket(self, places: Places, mode: Mode, outer: int, log_file: int) -> None:
        end = time.monotonic() + self.start_limit
        record: SandboxRecord | None = None
        while time.monotonic() < end:
            record = record or self._first_record(places, mode)
            code = self._exit_code(places, outer)
            if code is not None:
                raise SandboxError(
                    f"The engine ended at once, with code {code}.", read_tail(log_file)
                )
            engine = await _listening_engine(places) if record else None
            if record and engine:
                store_record(places.record, record.model_copy(update={"engine": engine}))
                return
            await asyncio.sleep(_STEP)
        raise SandboxError(
            f"The engine did not answer within {self.start_limit:.0f} seconds.", read_tail(log_file)
        )

    def _exit_code(self, places: Places, outer: int) -> int | None:
        """Return the exit code of a sandbox's outermost process; None while it runs."""
        if outer in self._children:
            code = processes.reap(outer)
            if code is not None:
                self._children.discard(outer)
            return code
        ref = find(outer)
        if ref and is_running(ref) and processes.is_marked(ref, places.mark):
            return None
        code = read_status(places.status).exit_code
        return -1 if code is None else code

    def _first_record(self, places: Places, mode: Mode) -> SandboxRecord | None:
        """Record the sandbox's inner process as soon as it is known."""
        pid = read_status(places.status).child_pid
        init = find(pid) if pid else None
        if init is None:
            return None
        record = SandboxRecord(boot=boot_id(), mark=places.mark, mode=mode, init=init)
        store_record(places.record, record)
        return record

    async def _adopt(self, places: Places) -> SandboxRecord | None:
        """Find a running engine by its socket and record it; return None when none answers."""
        engine = await _listening_engine(places)
        if engine is None:
            return None
        init, mode = await asyncio.to_thread(_outermost, engine, places.mark)
        record = SandboxRecord(
            boot=boot_id(), mark=places.mark, mode=mode, init=init, engine=engine
        )
        try:
            await asyncio.to_thread(store_record, places.record, record)
        except OSError as e:  # a full disk; the socket gives the same next time
            log.warning("Engine %d is found, and cannot be noted: %s", engine.pid, e)
        return record

    async def _end(self, places: Places) -> None:
        """Kill all remaining processes."""
        if record := _valid_record(places):
            await self._kill(record)
        await self._sweep(places.mark)
        self._reap()
        if not await self.groups.remove(places.mark):
            log.warning("A control group of replica %s is still in use", places.root.name)
        places.record.unlink(missing_ok=True)

    async def _kill(self, record: SandboxRecord) -> None:
        first = record.init
        if record.mode == "none" and record.engine:
            # the launcher then kills all its descendants, and ends
            first = record.engine
        send(first, signal.SIGKILL)
        if not await processes.wait_for_end(record.init, _END_SECONDS):
            send(record.init, signal.SIGKILL)

    async def _sweep(self, mark: str) -> None:
        """Kill every process with the mark, until there is none."""
        remaining: list[ProcessRef] = []
        for _ in range(_SWEEPS):
            self._reap()
            remaining = await asyncio.to_thread(self._remaining, mark)
            if not remaining:
                return
            for ref in remaining:
                send(ref, signal.SIGKILL)
            await asyncio.sleep(_STEP)
        raise SandboxError("Some processes of the sandbox do not end.", _listed(remaining))

    def _remaining(self, mark: str) -> list[ProcessRef]:
        """Return the sandbox's running processes: marked, or in its groups with no mark left."""
        grouped = [ref for ref in map(find, self.groups.pids(mark)) if ref]
        return list({*processes.marked(mark), *grouped})

    def _reap(self) -> None:
        self._children = {pid for pid in self._children if processes.reap(pid) is None}


async def _listening_engine(places: Places) -> ProcessRef | None:
    """Return the process that listens at the engine's socket.

    The kernel reports who began to listen. That process may have ended and left the socket to
    another, so its number counts only while it is a process of this sandbox.
    """
    pid = await listener_of(socket_of(places))
    return processes.find_marked(pid, places.mark) if pid else None


def _valid_record(places: Places) -> SandboxRecord | None:
    record = load_record(places.record)
    if record is None or record.boot != boot_id() or record.mark != places.mark:
        return None
    return record


def _outermost(engine: ProcessRef, mark: str) -> tuple[ProcessRef, Mode]:
    """Return the process that ends a sandbox, and the sandbox's mode."""
    for ref in processes.marked(mark):
        if processes.is_namespace_init(ref):
            return ref, "bubblewrap"
    current = engine
    for _ in range(_ANCESTORS):
        parent = processes.parent_of(current)
        if parent is None or not processes.is_marked(parent, mark):
            break
        current = parent
    return current, "none"


def _listed(refs: list[ProcessRef]) -> str:
    return ", ".join(f"pid {ref.pid}" for ref in refs)


def socket_of(places: Places) -> Path:
    """Return the socket of a workspace's engine."""
    return places.run / SOCKET_NAME
