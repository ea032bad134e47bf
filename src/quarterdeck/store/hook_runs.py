"""The runs of a replica's hooks, from their logs."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from quarterdeck.store.hooks import HookWatch
from quarterdeck.wire.setup import HookLog, HookLogs

if TYPE_CHECKING:
    from quarterdeck.client.client import Client

_OF_REPOSITORY = "repository:"


class RunsOwner(Protocol):
    """What reading needs of the deck."""

    @property
    def client(self) -> "Client": ...


@dataclass(frozen=True)
class HookRun:
    """One run. `seconds` is None when nobody knows; `repository` for an environment's."""

    kind: str
    name: str
    repository: str | None
    exit_code: int | None
    timed_out: bool
    executed_at: datetime
    seconds: float | None
    output: str
    left_out: int
    """Characters of the output that the log has not kept: the first ones."""
    script: str

    @property
    def failed(self) -> bool:
        return self.timed_out or self.exit_code != 0

    @property
    def key(self) -> str:
        """Names the run among those of a replica."""
        return f"{self.kind}\0{self.name}\0{self.executed_at.isoformat()}"


async def read_runs(owner: RunsOwner, replica_id: UUID, watch: HookWatch) -> list[HookRun]:
    """Every run, the newest first.

    Raises:
        ClientError: refused or unreachable.
    """
    return runs_of(await owner.client.hook_logs.read(replica_id), watch)


def runs_of(logs: HookLogs, watch: HookWatch) -> list[HookRun]:
    """The runs of both kinds, the newest first."""
    found = [*logs.warm_hooks.logs, *logs.start_hooks.logs]
    runs = [_run(log, _seconds(log, watch)) for log in found]
    return sorted(runs, key=lambda run: run.executed_at, reverse=True)


def _seconds(log: HookLog, watch: HookWatch) -> float | None:
    """As its log says; another server's may not, then as it was watched."""
    return watch.seconds_of(log) if log.duration_ms is None else log.duration_ms / 1000


def _run(log: HookLog, seconds: float | None) -> HookRun:
    of_repository = log.hook_name.startswith(_OF_REPOSITORY)
    script = log.hook_script or "\n".join(log.hook_commands or ())
    return HookRun(
        kind=log.hook_type,
        name=log.hook_name,
        repository=log.hook_name.removeprefix(_OF_REPOSITORY) if of_repository else None,
        exit_code=log.exit_code,
        timed_out=log.timed_out,
        executed_at=log.executed_at,
        seconds=seconds,
        output=log.output,
        left_out=max(0, log.output_total_chars - len(log.output)) if log.output_truncated else 0,
        script=script,
    )


def said_name(name: str) -> str:
    """A hook's name as people say it."""
    if name.startswith(_OF_REPOSITORY):
        return f"{name.removeprefix(_OF_REPOSITORY)} (its own)"
    return name
