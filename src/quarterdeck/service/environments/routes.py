"""Routes of environments, their parts (variables, files, skills, MCP servers, hooks), warm pools and hook tests."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from quarterdeck.service.context import Context, ServiceContext
from quarterdeck.service.description import fails, stream_of
from quarterdeck.service.environments import parts
from quarterdeck.service.environments.hooks import (
    HookTestRequest,
    follow_test,
    make_workspace,
    read_hook,
    read_warm_hook,
    run_test,
    save_start_hook,
    save_tested,
    save_warm_hook,
)
from quarterdeck.service.environments.rows import find_environment, list_environments
from quarterdeck.service.environments.service import (
    change_environment,
    create_environment,
    environment_tag,
    reach_to_change,
    remove_environment,
)
from quarterdeck.service.environments.skill_registries import search_skills
from quarterdeck.service.environments.warm_pools import look_into, switch_pool
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet, FleetDep
from quarterdeck.service.formats import IfMatch
from quarterdeck.service.identity.service import CallerDep
from quarterdeck.service.streams import PING, StreamResponse
from quarterdeck.wire.base import GivenId, Success
from quarterdeck.wire.environment_parts import (
    ChangeFile,
    ChangeMcp,
    ChangeVariable,
    CreateFile,
    CreateMcp,
    CreateSkill,
    CreateVariable,
    EnvironmentFileAnswer,
    EnvironmentFileList,
    EnvironmentMcpAnswer,
    EnvironmentMcpList,
    EnvironmentSkillAnswer,
    EnvironmentSkillList,
    EnvironmentVariableAnswer,
    EnvironmentVariableList,
    FoundSkills,
    HookTest,
    HookTestAnswer,
    SavedHookTest,
    SaveHook,
    StartHookAnswer,
    TestHook,
    WarmHookAnswer,
    WarmHookState,
)
from quarterdeck.wire.environments import (
    ChangeEnvironment,
    ChangeWarmPool,
    CreateEnvironment,
    Environment,
    EnvironmentAnswer,
    EnvironmentList,
    PooledWorkspaceList,
    WarmPoolAnswer,
)
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.setup import HookKind

PREFIX = "/v1/environments/{environment_id}"


def _either(value: object, read: ValidatorFunctionWrapHandler) -> object:
    """Validate a value of either kind, with one message for both."""
    try:
        return read(value)
    except ValidationError as e:
        raise ValueError("it must be `global`, or a UUID with its hyphens and nothing else") from e


_Given = Annotated[GivenId | Literal["global"], WrapValidator(_either)]


async def _reference(environment_id: Annotated[_Given, Path()]) -> str:
    return str(environment_id)


EnvironmentRef = Annotated[str, Depends(_reference)]
"""The environment named in the path: its id, or `global`."""


def environment_router() -> APIRouter:
    """Return a router for paths below one environment."""
    return APIRouter(prefix=PREFIX, tags=["environments"])


environments_router = APIRouter(prefix="/v1/environments", tags=["environments"])


@environments_router.get("")
async def list_all(
    context: Context, caller: CallerDep, scope: Literal["org", "user", "all"] = "all"
) -> EnvironmentList:
    """Return the environments that the caller may use."""
    environments = await context.database.read(
        lambda c: list_environments(c, caller.organization_id, caller.user_id, scope)
    )
    return EnvironmentList(environments=environments)


@environments_router.post("", status_code=201)
async def create(
    body: CreateEnvironment, context: Context, caller: CallerDep, response: Response
) -> EnvironmentAnswer:
    """Create an environment."""
    return _tagged(response, await create_environment(context, caller, body))


@environments_router.get("/{environment_id}")
async def read(
    environment: EnvironmentRef, context: Context, caller: CallerDep, response: Response
) -> EnvironmentAnswer:
    """Read an environment; `global` names the organization's global one."""
    environment_row = await context.database.read(
        lambda c: find_environment(c, caller.organization_id, caller.user_id, environment)
    )
    if environment_row is None:
        raise ApiError(ErrorCode.NOT_FOUND, "No environment has this id.")
    return _tagged(response, environment_row)


@environments_router.patch("/{environment_id}", responses=fails(412))
async def change(
    environment: EnvironmentRef,
    body: ChangeEnvironment,
    context: Context,
    fleet: FleetDep,
    caller: CallerDep,
    response: Response,
    if_match: IfMatch = None,
) -> EnvironmentAnswer:
    """Change the given fields of an environment; the global one is 400."""
    changed = await change_environment(context, caller, environment, body, if_match)
    fleet.permissions_changed()
    return _tagged(response, changed)


def _tagged(response: Response, environment: Environment) -> EnvironmentAnswer:
    response.headers["ETag"] = environment_tag(environment)
    return EnvironmentAnswer(environment=environment)


@environments_router.delete("/{environment_id}")
async def remove(environment: EnvironmentRef, context: Context, caller: CallerDep) -> Success:
    """Remove an environment with its parts; 409 for the global one and one that is in use."""
    await remove_environment(context, caller, environment)
    return Success()


_warm_pools_environment = environment_router()
_pools_router = APIRouter(tags=["environments"])


@_warm_pools_environment.put("/warm-pools")
async def switch(
    environment: EnvironmentRef,
    body: ChangeWarmPool,
    context: Context,
    caller: CallerDep,
) -> WarmPoolAnswer:
    """Switch the environment's pool on or off; its workspaces are created, or removed, in the background."""
    pool = await switch_pool(context, caller, environment, body.enabled)
    return WarmPoolAnswer(warm_pool=pool)


@_pools_router.get("/v1/warm-pools/{id}/workspaces")
async def list_workspaces(id: GivenId, context: Context, caller: CallerDep) -> PooledWorkspaceList:
    """Return the workspaces of a pool."""
    return PooledWorkspaceList(workspaces=await look_into(context, caller, str(id)))


warm_pools_router = APIRouter()
warm_pools_router.include_router(_warm_pools_environment)
warm_pools_router.include_router(_pools_router)


hook_tests_router = environment_router()


@dataclass(frozen=True)
class _HookTests:
    """Tests of the hooks of an environment, for one caller."""

    environment: EnvironmentRef
    context: Context
    fleet: FleetDep
    caller: CallerDep

    async def run(self, kind: HookKind, content: str | None) -> HookTest:
        """Run a test to its end."""
        return await run_test(self.context, self.fleet, self._request(kind, content))

    async def stream(self, kind: HookKind, content: str | None) -> Response:
        """Return the stream of a test's events; its end also ends the test."""
        # Errors of this are not part of the stream.
        workspace_id = await make_workspace(self.context, self._request(kind, content))
        frames = _frames(self.context, self.fleet, workspace_id)
        return StreamResponse(frames, self.context.stopping)

    def _request(self, kind: HookKind, content: str | None) -> HookTestRequest:
        return HookTestRequest(self.caller, self.environment, kind, content)


HookTestsDep = Annotated[_HookTests, Depends()]


@hook_tests_router.post("/warm-hooks/test")
async def test_warm(body: TestHook, tests: HookTestsDep) -> HookTestAnswer:
    """Run a warm hook in a new workspace of the environment, which is removed then."""
    return HookTestAnswer(test=await tests.run(HookKind.WARM, body.content))


@hook_tests_router.post(
    "/warm-hooks/test/stream", response_class=StreamResponse, responses=stream_of("HookTestEvent")
)
async def stream_warm(body: TestHook, tests: HookTestsDep) -> Response:
    """Run a warm hook and stream its events, as for start hooks. Disconnecting ends the test."""
    return await tests.stream(HookKind.WARM, body.content)


@hook_tests_router.post("/warm-hooks/save-test", status_code=201)
async def save_and_test_warm(body: SaveHook, tests: HookTestsDep) -> SavedHookTest:
    """Test a warm hook and save it; it comes into force when it ended with 0."""
    context, caller, environment = tests.context, tests.caller, tests.environment
    # Before the test, which takes long.
    await context.database.read(lambda c: reach_to_change(c, caller, environment))
    test = await tests.run(HookKind.WARM, body.content)
    passed = test.exit_code == 0
    saved = await save_tested(context, caller, environment, body.content, passed)
    if passed:
        tests.fleet.pools.nudge()
    return SavedHookTest(warm_hook=saved, test=test)


@hook_tests_router.post("/start-hooks/test")
async def test_start(body: TestHook, tests: HookTestsDep) -> HookTestAnswer:
    """Run a start hook, after the warm ones, in a new workspace, which is removed then."""
    return HookTestAnswer(test=await tests.run(HookKind.START, body.content))


@hook_tests_router.post(
    "/start-hooks/test/stream", response_class=StreamResponse, responses=stream_of("HookTestEvent")
)
async def stream_start(body: TestHook, tests: HookTestsDep) -> Response:
    """Run a start hook and stream its events. Disconnecting ends the test."""
    return await tests.stream(HookKind.START, body.content)


async def _frames(
    context: ServiceContext, fleet: Fleet, workspace_id: str
) -> AsyncGenerator[bytes, None]:
    async with aclosing(follow_test(context, fleet, workspace_id)) as events:
        async for event in events:
            data = event and event.model_dump_json(exclude_unset=True)
            yield PING if data is None else f"data: {data}\n\n".encode()


router = environment_router()
_search = APIRouter(tags=["environments"])


@router.get("/variables")
async def list_variables(
    environment: EnvironmentRef, context: Context, caller: CallerDep
) -> EnvironmentVariableList:
    """Return the environment's own variables, without inherited ones."""
    variables = await parts.list_variables(context, caller, environment)
    return EnvironmentVariableList(environment_variables=variables)


@router.post("/variables", status_code=201)
async def add_variable(
    environment: EnvironmentRef, body: CreateVariable, context: Context, caller: CallerDep
) -> EnvironmentVariableAnswer:
    """Add a variable."""
    variable = await parts.add_variable(context, caller, environment, body)
    return EnvironmentVariableAnswer(environment_variable=variable)


@router.patch("/variables/{id}")
async def change_variable(
    environment: EnvironmentRef,
    id: GivenId,
    body: ChangeVariable,
    context: Context,
    caller: CallerDep,
) -> EnvironmentVariableAnswer:
    """Edit a variable."""
    changed = await parts.change_variable(context, caller, environment, str(id), body)
    return EnvironmentVariableAnswer(environment_variable=changed)


@router.delete("/variables/{id}")
async def remove_variable(
    environment: EnvironmentRef, id: GivenId, context: Context, caller: CallerDep
) -> Success:
    """Remove a variable."""
    await parts.VARIABLES.remove(context, caller, environment, str(id))
    return Success()


@router.get("/files")
async def list_files(
    environment: EnvironmentRef, context: Context, caller: CallerDep
) -> EnvironmentFileList:
    """Return the environment's own files, without inherited ones."""
    files = await parts.FILES.list_own(context, caller, environment)
    return EnvironmentFileList(environment_files=files)


@router.post("/files", status_code=201)
async def add_file(
    environment: EnvironmentRef, body: CreateFile, context: Context, caller: CallerDep
) -> EnvironmentFileAnswer:
    """Add a file."""
    file = await parts.add_file(context, caller, environment, body)
    return EnvironmentFileAnswer(environment_file=file)


@router.patch("/files/{id}")
async def change_file(
    environment: EnvironmentRef, id: GivenId, body: ChangeFile, context: Context, caller: CallerDep
) -> EnvironmentFileAnswer:
    """Edit a file."""
    changed = await parts.change_file(context, caller, environment, str(id), body)
    return EnvironmentFileAnswer(environment_file=changed)


@router.delete("/files/{id}")
async def remove_file(
    environment: EnvironmentRef, id: GivenId, context: Context, caller: CallerDep
) -> Success:
    """Remove a file."""
    await parts.FILES.remove(context, caller, environment, str(id))
    return Success()


QUERY_LIMIT = 1_000


@_search.get("/v1/environment-skills/search")
async def search(
    context: Context, caller: CallerDep, q: Annotated[str, Query(max_length=QUERY_LIMIT)] = ""
) -> FoundSkills:
    """Return skills of the configured registries, best match first; without a query, all of them."""
    return FoundSkills(skills=await search_skills(context.home, context.sources, q))


@router.get("/skills")
async def list_skills(
    environment: EnvironmentRef, context: Context, caller: CallerDep
) -> EnvironmentSkillList:
    """Return every skill that is enabled on the environment."""
    skills = await parts.SKILLS.list_own(context, caller, environment)
    return EnvironmentSkillList(environment_skills=skills)


@router.post("/skills", status_code=201)
async def add_skill(
    environment: EnvironmentRef, body: CreateSkill, context: Context, caller: CallerDep
) -> EnvironmentSkillAnswer:
    """Enable a skill."""
    skill = await parts.add_skill(context, caller, environment, body)
    return EnvironmentSkillAnswer(environment_skill=skill)


@router.delete("/skills/{id}")
async def remove_skill(
    environment: EnvironmentRef, id: GivenId, context: Context, caller: CallerDep
) -> Success:
    """Remove a skill."""
    await parts.SKILLS.remove(context, caller, environment, str(id))
    return Success()


@router.get("/mcps")
async def list_mcps(
    environment: EnvironmentRef, context: Context, caller: CallerDep
) -> EnvironmentMcpList:
    """Return the environment's own MCP servers, without inherited ones."""
    mcps = await parts.MCPS.list_own(context, caller, environment)
    return EnvironmentMcpList(environment_mcps=mcps)


@router.post("/mcps", status_code=201)
async def add_mcp(
    environment: EnvironmentRef, body: CreateMcp, context: Context, caller: CallerDep
) -> EnvironmentMcpAnswer:
    """Add an MCP server."""
    mcp = await parts.add_mcp(context, caller, environment, body)
    return EnvironmentMcpAnswer(environment_mcp=mcp)


@router.patch("/mcps/{id}")
async def change_mcp(
    environment: EnvironmentRef, id: GivenId, body: ChangeMcp, context: Context, caller: CallerDep
) -> EnvironmentMcpAnswer:
    """Edit an MCP server."""
    changed = await parts.change_mcp(context, caller, environment, str(id), body)
    return EnvironmentMcpAnswer(environment_mcp=changed)


@router.delete("/mcps/{id}")
async def remove_mcp(
    environment: EnvironmentRef, id: GivenId, context: Context, caller: CallerDep
) -> Success:
    """Remove an MCP server."""
    await parts.MCPS.remove(context, caller, environment, str(id))
    return Success()


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


environment_parts_router = APIRouter()
environment_parts_router.include_router(router)
environment_parts_router.include_router(_search)
