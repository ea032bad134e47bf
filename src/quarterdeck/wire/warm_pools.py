"""Warm pools: workspaces prepared before they are asked for (INTERFACE 7)."""

from quarterdeck.wire.base import Body, Id, Record, Switch, Timestamp


class WarmPool(Record):
    """The pool of an environment. A saved warm hook bumps `generation`, which makes the rest stale."""

    id: Id
    organization_id: Id
    environment_id: Id
    enabled: bool
    target_size: int
    generation: int
    ready_count: int = 0
    stale_count: int = 0
    warming_count: int = 0
    last_failure_at: Timestamp | None = None
    last_failure_reason: str | None = None
    updated_at: Timestamp


class WarmPoolAnswer(Record):
    """Answer of `PUT .../warm-pools`."""

    warm_pool: WarmPool


class ChangeWarmPool(Body):
    """Body of `PUT .../warm-pools`."""

    enabled: Switch


class PooledWorkspace(Record):
    """A workspace that waits in a pool; `state` is `warming`, `ready`, `stale` or `failed`."""

    id: Id
    state: str
    generation: int
    created_at: Timestamp


class PooledWorkspaceList(Record):
    """Answer of `GET /v1/warm-pools/{id}/workspaces`, oldest first."""

    workspaces: list[PooledWorkspace]
