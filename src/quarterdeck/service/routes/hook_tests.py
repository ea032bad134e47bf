"""Testing hooks (INTERFACE 7)."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.responses import Response

from quarterdeck.service.auth import CallerDep
from quarterdeck.service.broadcast import PING
from quarterdeck.service.context import Context, ServiceContext
from quarterdeck.service.fleet.fleet import Fleet, FleetDep
from quarterdeck.service.hook_tests.making import Asked, make_workspace
from quarterdeck.service.hook_tests.running import follow_test, run_test
from quarterdeck.service.hook_tests.saving import save_tested
from quarterdeck.service.routes.environment_paths import EnvironmentRef, environment_router
from quarterdeck.service.streams import StreamResponse
from quarterdeck.wire.environment_hooks import SaveHook
from quarterdeck.wire.hook_tests import HookTestAnswer, SavedHookTest, TestHook
from quarterdeck.wire.setup import HookKind

router = environment_router()


@router.post("/warm-hooks/test")
async def test_warm(
    environment: EnvironmentRef,
    body: TestHook,
    context: Context,
    fleet: FleetDep,
    caller: CallerDep,
) -> HookTestAnswer:
    """Runs a warm hook in a new workspace of the environment, which is removed then."""
    asked = Asked(caller, environment, HookKind.WARM, body.content)
    return HookTestAnswer(test=await run_test(context, fleet, asked))


@router.post("/warm-hooks/test/stream", response_class=StreamResponse)
async def stream_warm(
    environment: EnvironmentRef,
    body: TestHook,
    context: Context,
    fleet: FleetDep,
    caller: CallerDep,
) -> Response:
    """The same, told while it happens, as for start hooks. Whoever leaves ends the test."""
    asked = Asked(caller, environment, HookKind.WARM, body.content)
    return await _stream(context, fleet, asked)


@router.post("/warm-hooks/save-test", status_code=201)
async def save_and_test_warm(
    environment: EnvironmentRef,
    body: SaveHook,
    context: Context,
    fleet: FleetDep,
    caller: CallerDep,
) -> SavedHookTest:
    """Tests a warm hook and saves it; it comes into force when it ended with 0."""
    asked = Asked(caller, environment, HookKind.WARM, body.content)
    test = await run_test(context, fleet, asked)
    passed = test.exit_code == 0
    saved = await save_tested(context, caller, environment, body.content, passed)
    if passed:
        fleet.pools.nudge()
    return SavedHookTest(warm_hook=saved, test=test)


@router.post("/start-hooks/test")
async def test_start(
    environment: EnvironmentRef,
    body: TestHook,
    context: Context,
    fleet: FleetDep,
    caller: CallerDep,
) -> HookTestAnswer:
    """Runs a start hook, after the warm ones, in a new workspace, which is removed then."""
    asked = Asked(caller, environment, HookKind.START, body.content)
    return HookTestAnswer(test=await run_test(context, fleet, asked))


@router.post("/start-hooks/test/stream", response_class=StreamResponse)
async def stream_start(
    environment: EnvironmentRef,
    body: TestHook,
    context: Context,
    fleet: FleetDep,
    caller: CallerDep,
) -> Response:
    """The same, told while it happens. Whoever leaves ends the test."""
    asked = Asked(caller, environment, HookKind.START, body.content)
    return await _stream(context, fleet, asked)


async def _stream(context: ServiceContext, fleet: Fleet, asked: Asked) -> Response:
    workspace_id = await make_workspace(context, asked)  # what is wrong with it is no stream yet
    return StreamResponse(_frames(context, fleet, workspace_id), context.stopping)


async def _frames(
    context: ServiceContext, fleet: Fleet, workspace_id: str
) -> AsyncGenerator[bytes, None]:
    async with aclosing(follow_test(context, fleet, workspace_id)) as events:
        async for event in events:
            told = event and event.model_dump_json(exclude_unset=True)
            yield PING if told is None else f"data: {told}\n\n".encode()
