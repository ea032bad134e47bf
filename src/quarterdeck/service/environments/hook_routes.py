"""Routes of the hooks of an environment."""

from quarterdeck.service.context import Context
from quarterdeck.service.environments.hooks import (
    read_hook,
    read_warm_hook,
    save_start_hook,
    save_warm_hook,
)
from quarterdeck.service.environments.routes import EnvironmentRef, environment_router
from quarterdeck.service.identity.service import CallerDep
from quarterdeck.wire.environment_parts import (
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
    """Return the warm hook in force, and the environment's pool."""
    return await read_warm_hook(context, caller, environment)


@router.post("/warm-hooks/save")
async def save_warm(
    environment: EnvironmentRef, body: SaveHook, context: Context, caller: CallerDep
) -> WarmHookAnswer:
    """Save a warm hook and put it in force, without testing it."""
    saved = await save_warm_hook(context, caller, environment, body.content)
    return WarmHookAnswer(warm_hook=saved)


@router.get("/start-hooks")
async def read_start(
    environment: EnvironmentRef, context: Context, caller: CallerDep
) -> StartHookAnswer:
    """Return the start hook in force."""
    hook = await read_hook(context, caller, environment, HookKind.START)
    return StartHookAnswer(start_hook=hook)


@router.post("/start-hooks/save")
async def save_start(
    environment: EnvironmentRef, body: SaveHook, context: Context, caller: CallerDep
) -> StartHookAnswer:
    """Save a start hook and put it in force; blank content leaves none in force."""
    saved = await save_start_hook(context, caller, environment, body.content)
    return StartHookAnswer(start_hook=saved)
