"""Hooks of an environment: reading and saving (specification, operation 9; INTERFACE 7)."""

from quarterdeck.service.auth import CallerDep
from quarterdeck.service.context import Context
from quarterdeck.service.environments.hooks import (
    read_hook,
    read_warm_hook,
    save_start_hook,
    save_warm_hook,
)
from quarterdeck.service.routes.environment_paths import EnvironmentRef, environment_router
from quarterdeck.wire.environment_hooks import (
    SaveHook,
    StartHookAnswer,
    WarmHookAnswer,
    WarmHookState,
)
from quarterdeck.wire.setup import HookKind

router = environment_router()


@router.get("/warm-hooks")
async def read_warm(
    environment: EnvironmentRef, context: Context, caller: CallerDep
) -> WarmHookState:
    """The warm hook in force, and the environment's pool."""
    return await read_warm_hook(context, caller, environment)


@router.post("/warm-hooks/save")
async def save_warm(
    environment: EnvironmentRef, body: SaveHook, context: Context, caller: CallerDep
) -> WarmHookAnswer:
    """Saves a warm hook and puts it in force, without testing it."""
    saved = await save_warm_hook(context, caller, environment, body.content)
    return WarmHookAnswer(warm_hook=saved)


@router.get("/start-hooks")
async def read_start(
    environment: EnvironmentRef, context: Context, caller: CallerDep
) -> StartHookAnswer:
    """The start hook in force."""
    found = await read_hook(context, caller, environment, HookKind.START)
    return StartHookAnswer(start_hook=found)


@router.post("/start-hooks/save")
async def save_start(
    environment: EnvironmentRef, body: SaveHook, context: Context, caller: CallerDep
) -> StartHookAnswer:
    """Saves a start hook and puts it in force; blank content leaves none in force."""
    saved = await save_start_hook(context, caller, environment, body.content)
    return StartHookAnswer(start_hook=saved)
