"""Single commands run in replicas, their results, and the history of the prompt.

A run continues when it is not shown. The interface has no operation that stops one, so an interrupt is
another command, which finds the first by a mark in its environment.
"""

from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from quarterdeck.client.errors import ClientError
from quarterdeck.store.signals import KeyedTasks, ReplicaChanged
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.terminals import ExecResponse

if TYPE_CHECKING:
    from quarterdeck.store.app_state import AppState

SECONDS = 50
"""Time limit of a command; to end it sooner, interrupt it."""
INTERRUPT_SECONDS = 10
MOST_RUNS = 50
"""Runs kept for each replica."""
MOST_HISTORY = 200

MARK = "QD_EXEC"
# The shell itself is found by its arguments, processes that it became or started by their environment. The
# brackets keep the search from finding its own shell.
_SEARCH = """\
for p in /proc/[0-9]*; do
  if grep -qs '{mark}[=]{key}' "$p/cmdline" "$p/environ"; then
    s=$(cat "$p/stat" 2>/dev/null) || continue
    set -- ${{s##*) }}
    kill -s {signal} -- "-$3" 2>/dev/null && found=1
  fi
done
[ -n "$found" ]"""


@dataclass(eq=False)
class ExecRun:
    """One command and its result. `response` is None while it runs, and when it failed."""

    key: str
    replica_id: UUID
    command: str
    began: datetime
    ended: datetime | None = None
    response: ExecResponse | None = None
    problem: str = ""
    interrupts: int = 0
    """Number of interrupts by the person."""
    interrupted: int = 0
    """Number of interrupts that reached its processes."""

    @property
    def running(self) -> bool:
        return self.ended is None

    @property
    def seconds(self) -> float | None:
        """Its duration, including the request to the service."""
        return None if self.ended is None else (self.ended - self.began).total_seconds()


class ExecRuns:
    """The runs of an installation's replicas."""

    def __init__(self, owner: "AppState", tasks: KeyedTasks) -> None:
        self._owner = owner
        self._tasks = tasks
        self._runs: dict[UUID, deque[ExecRun]] = {}
        self.history: list[str] = []
        """Distinct commands, the latest last."""

    def of(self, replica_id: UUID) -> list[ExecRun]:
        """Return a replica's runs, oldest first."""
        return list(self._runs.get(replica_id, ()))

    def running(self, replica_id: UUID) -> list[ExecRun]:
        """Return the runs that have not ended."""
        return [run for run in self.of(replica_id) if run.running]

    def start(self, replica_id: UUID, command: str) -> ExecRun:
        """Run a command; each change of its state is published as a change of the replica."""
        run = ExecRun(uuid4().hex, replica_id, command, utc_now())
        self.keep(run)
        if command in self.history:
            self.history.remove(command)
        self.history = [*self.history, command][-MOST_HISTORY:]
        self._tasks.start(("exec", run.key), self._run(run))
        return run

    def keep(self, run: ExecRun) -> None:
        """Add a run to those of its replica; the oldest is dropped when there are too many."""
        self._runs.setdefault(run.replica_id, deque(maxlen=MOST_RUNS)).append(run)

    def interrupt(self, run: ExecRun) -> None:
        """Interrupt a run; kill it the second time."""
        if run.running:
            run.interrupts += 1
            self._tasks.start(("exec stop", run.key, run.interrupts), self._interrupt(run))
            self._owner.publish(ReplicaChanged(run.replica_id))

    def forget(self, replica_id: UUID) -> None:
        """Drop the runs that have ended."""
        running = self.running(replica_id)
        self._runs[replica_id] = deque(running, maxlen=MOST_RUNS)

    async def _run(self, run: ExecRun) -> None:
        # On the same line, so that the shell's own messages keep their line numbers.
        command = f"export {MARK}={run.key}; {run.command}"
        try:
            run.response = await self._owner.client.exec.run(
                run.replica_id, command, SECONDS, in_repository=True
            )
        except ClientError as error:
            run.problem = f"{error} {error.next_step}"
        finally:
            run.ended = utc_now()
        self._owner.publish(ReplicaChanged(run.replica_id))

    async def _interrupt(self, run: ExecRun) -> None:
        signal = "INT" if run.interrupts == 1 else "KILL"
        search = _SEARCH.format(mark=MARK, key=run.key, signal=signal)
        try:
            response = await self._owner.client.exec.run(run.replica_id, search, INTERRUPT_SECONDS)
        except ClientError as error:
            run.problem = f"not interrupted: {error} {error.next_step}"
        else:
            if response.exit_code == 0:
                run.interrupted += 1
            elif run.running:
                run.problem = "not interrupted: its process was not found."
        self._owner.publish(ReplicaChanged(run.replica_id))
