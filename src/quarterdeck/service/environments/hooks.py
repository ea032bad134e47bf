"""The hooks of an environment: saved and activated, not run here."""

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.environments.rows import active_hook, drop_active_hook, save_hook
from quarterdeck.service.environments.service import reach, reach_to_change
from quarterdeck.service.environments.warm_pool_rows import find_pool, make_pools_stale
from quarterdeck.service.formats import moment_text
from quarterdeck.service.identity.service import Caller
from quarterdeck.wire.environment_parts import EnvironmentHook, WarmHookState
from quarterdeck.wire.setup import HookKind


async def read_hook(
    context: ServiceContext, caller: Caller, environment: str, kind: HookKind
) -> EnvironmentHook | None:
    """Return the active version.

    Raises:
        ApiError: NOT_FOUND when there is no such environment.
    """

    def run(connection: Connection) -> EnvironmentHook | None:
        return _in_force(connection, reach(connection, caller, environment), kind)

    return await context.database.read(run)


async def read_warm_hook(
    context: ServiceContext, caller: Caller, environment: str
) -> WarmHookState:
    """Return the active warm hook, and the environment's pool.

    Raises:
        ApiError: NOT_FOUND when there is no such environment.
    """

    def run(connection: Connection) -> WarmHookState:
        of = reach(connection, caller, environment)
        hook = _in_force(connection, of, HookKind.WARM)
        return WarmHookState(warm_hook=hook, warm_pool=find_pool(connection, context.home_id, of))

    return await context.database.read(run)


async def save_warm_hook(
    context: ServiceContext, caller: Caller, environment: str, content: str
) -> EnvironmentHook:
    """Store the next version and activate it; prepared workspaces are stale from now on.

    Raises:
        ApiError: NOT_FOUND when there is no such environment.
    """
    now = moment_text(context.clock())

    def run(connection: Connection) -> EnvironmentHook:
        of = reach_to_change(connection, caller, environment)
        saved = save_hook(connection, caller.organization_id, of, HookKind.WARM, content, now)
        make_pools_stale(connection, caller.organization_id, of, now)
        return hook_record(saved)

    saved = await context.database.write(run)
    context.pools_changed.set()
    return saved


async def save_start_hook(
    context: ServiceContext, caller: Caller, environment: str, content: str
) -> EnvironmentHook | None:
    """Store the next version and activate it; with blank content none is active.

    Raises:
        ApiError: NOT_FOUND when there is no such environment.
    """
    now = moment_text(context.clock())

    def run(connection: Connection) -> EnvironmentHook | None:
        of = reach_to_change(connection, caller, environment)
        if content.strip():
            save_hook(connection, caller.organization_id, of, HookKind.START, content, now)
        else:
            drop_active_hook(connection, of, HookKind.START)
        make_pools_stale(connection, caller.organization_id, of, now)
        return _in_force(connection, of, HookKind.START)

    saved = await context.database.write(run)
    context.pools_changed.set()
    return saved


def hook_record(row: RowMapping) -> EnvironmentHook:
    """Return the version for a response: the columns of the contract."""
    return EnvironmentHook.model_validate(
        {name: value for name, value in row.items() if name in EnvironmentHook.model_fields}
    )


def _in_force(connection: Connection, environment: str, kind: HookKind) -> EnvironmentHook | None:
    row = active_hook(connection, environment, kind)
    return None if row is None else hook_record(row)
