"""Saving a warm hook together with its test."""

from sqlalchemy import Connection

from quarterdeck.service.auth import Caller
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.environments.access import reach
from quarterdeck.service.environments.hooks import hook_record
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.hooks import save_hook
from quarterdeck.service.records.warm_generations import make_pools_stale
from quarterdeck.wire.environment_hooks import EnvironmentHook
from quarterdeck.wire.setup import HookKind


async def save_tested(
    context: ServiceContext, caller: Caller, environment: str, content: str, passed: bool
) -> EnvironmentHook:
    """Stores the next version of the warm hook, in force only when its test passed.

    Raises:
        ApiError: NOT_FOUND when there is no such environment.
    """
    now = moment_text(context.clock())

    def run(connection: Connection) -> EnvironmentHook:
        of = reach(connection, caller, environment)
        organization = caller.organization_id
        row = save_hook(connection, organization, of, HookKind.WARM, content, now, active=passed)
        if passed:
            make_pools_stale(connection, organization, of, now)
        return hook_record(row)

    return await context.database.write(run)
