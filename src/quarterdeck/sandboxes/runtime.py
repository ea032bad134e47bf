"""Starting, finding and stopping the processes of a workspace."""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quarterdeck.sandboxes import processes
from quarterdeck.sandboxes.guarded import open_new_log, read_tail
from quarterdeck.sandboxes.launch import LaunchSpec, spawn
from quarterdeck.sandboxes.layout import Places
from quarterdeck.sandboxes.link import listener_of
from quarterdeck.sandboxes.mirrors import Mirrors
from quarterdeck.sandboxes.port import SandboxError
from quarterdeck.sandboxes.processes import ProcessRef
from quarterdeck.sandboxes.record import (
    Mode,
    SandboxRecord,
    load_book,
    load_record,
    read_status,
    store,
)
from quarterdeck.sandboxes.sandbox import Confinement, describe
from quarterdeck.sandboxes.shown import Shown
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

    What runs is known from a record on disk and from `/proc`, never from memory alone: a service
    that comes later knows as much. Only a start needs to know how sandboxes are confined, and room
    on the disk. `engine` is the command to which `--run-dir DIR` is added; `shown` finds,
    in a thread, the programs of the person's that sandboxes see from their next start.
    """

    mirrors: Mirrors
    engine: Sequence[str]
    start_limit: float
    grace: float
    shown: Callable[[], Shown]
    _children: set[int] = field(default_factory=set[int], init=False)

    async def start(self, places: Places, confinement: Confinement) -> None:
        """Starts the engine unless it runs, and returns when its socket answers.

        Raises:
            SandboxError: it did not come up.
            OSError: a file of the start could not be written.
        """
        if await self.alive(places):
            return
        await self.stop(places)
        if not places.run.is_dir():
            raise SandboxError("The workspace has no files yet; it has to be provisioned first.")
        said = await asyncio.to_thread(open_new_log, places.run / LOG_NAME, confinement.user)
        try:
            await self._launch(places, confinement, said)
        except BaseException:
            await self._end(places)
            raise
        finally:
            os.close(said)

    async def alive(self, places: Places) -> bool:
        """Whether the engine runs; one that is not in the record is found by its socket."""
        self._reap()
        record = _valid_record(places)
        if record and record.engine and processes.is_running(record.engine):
            return True
        return await self._adopt(places) is not None

    async def stop(self, places: Places) -> None:
        """Ends every process of the sandbox: asked first, then killed."""
        record = _valid_record(places) or await self._adopt(places)
        if record and record.engine:
            processes.send(record.engine, signal.SIGTERM)
            await processes.wait_gone(record.engine, self.grace)
        await self._end(places)

    async def _launch(self, places: Places, confinement: Confinement, said: int) -> None:
        spec = await asyncio.to_thread(self._describe, places, confinement)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        status = os.open(places.status, flags, 0o600)
        try:
            outer = spawn(spec, said, status)
        finally:
            os.close(status)
        self._children.add(outer)
        await self._until_answering(places, confinement.mode, outer, said)

    def _describe(self, places: Places, confinement: Confinement) -> LaunchSpec:
        book = load_book(places.clones)
        mirrors = {
            self.mirrors.path(repository_id).name: self.mirrors.objects(repository_id)
            for repository_id, entry in book.clones.items()
            if entry.objects and self.mirrors.objects(repository_id).is_dir()
        }
        command = [*self.engine, "--run-dir", confinement.layout(places).run_dir]
        return describe(confinement, places, command, mirrors, book, self.shown())

    async def _until_answering(self, places: Places, mode: Mode, outer: int, said: int) -> None:
        end = time.monotonic() + self.start_limit
        record: SandboxRecord | None = None
        while time.monotonic() < end:
            record = record or self._first_record(places, mode)
            code = processes.reap(outer)
            if code is not None:
                self._children.discard(outer)
                raise SandboxError(f"The engine ended at once, with code {code}.", read_tail(said))
            pid = await listener_of(socket_of(places)) if record else None
            engine = processes.find(pid) if pid else None
            if record and engine:
                store(places.record, record.model_copy(update={"engine": engine}))
                return
            await asyncio.sleep(_STEP)
        raise SandboxError(
            f"The engine did not answer within {self.start_limit:.0f} seconds.", read_tail(said)
        )

    def _first_record(self, places: Places, mode: Mode) -> SandboxRecord | None:
        """Notes the sandbox's inner process as soon as it is known."""
        pid = read_status(places.status).child_pid
        init = processes.find(pid) if pid else None
        if init is None:
            return None
        record = SandboxRecord(boot=processes.boot_id(), mark=places.mark, mode=mode, init=init)
        store(places.record, record)
        return record

    async def _adopt(self, places: Places) -> SandboxRecord | None:
        """Finds a running engine by its socket and notes it; None when nobody answers."""
        pid = await listener_of(socket_of(places))
        engine = processes.find(pid) if pid else None
        if engine is None:
            return None
        init, mode = _outermost(engine, places.mark)
        record = SandboxRecord(
            boot=processes.boot_id(), mark=places.mark, mode=mode, init=init, engine=engine
        )
        try:
            await asyncio.to_thread(store, places.record, record)
        except OSError as e:  # a full disk; the socket tells as much next time
            log.warning("Engine %d is found, and cannot be noted: %s", engine.pid, e)
        return record

    async def _end(self, places: Places) -> None:
        """Kills what is left, without asking."""
        if record := _valid_record(places):
            await self._kill(record)
        await self._sweep(places.mark)
        self._reap()
        places.record.unlink(missing_ok=True)

    async def _kill(self, record: SandboxRecord) -> None:
        first = record.init
        if record.mode == "none" and record.engine:
            # the launcher then kills all its descendants, and ends
            first = record.engine
        processes.send(first, signal.SIGKILL)
        if not await processes.wait_gone(record.init, _END_SECONDS):
            processes.send(record.init, signal.SIGKILL)

    async def _sweep(self, mark: str) -> None:
        """Kills whatever carries the mark, until nothing does."""
        left: list[ProcessRef] = []
        for _ in range(_SWEEPS):
            self._reap()
            left = await asyncio.to_thread(processes.marked, mark)
            if not left:
                return
            for ref in left:
                processes.send(ref, signal.SIGKILL)
            await asyncio.sleep(_STEP)
        raise SandboxError("Some processes of the sandbox do not end.", _listed(left))

    def _reap(self) -> None:
        self._children = {pid for pid in self._children if processes.reap(pid) is None}


def _valid_record(places: Places) -> SandboxRecord | None:
    record = load_record(places.record)
    if record is None or record.boot != processes.boot_id() or record.mark != places.mark:
        return None
    return record


def _outermost(engine: ProcessRef, mark: str) -> tuple[ProcessRef, Mode]:
    """The process that ends a sandbox, and the sandbox's mode, from the engine upwards."""
    current = engine
    for _ in range(_ANCESTORS):
        if processes.is_namespace_init(current):
            return current, "bubblewrap"
        parent = processes.parent_of(current)
        if parent is None or not processes.is_marked(parent, mark):
            return current, "none"
        current = parent
    return engine, "none"


def _listed(left: list[ProcessRef]) -> str:
    return ", ".join(f"pid {ref.pid}" for ref in left)


def socket_of(places: Places) -> Path:
    """Where a workspace's engine listens."""
    return places.run / SOCKET_NAME
