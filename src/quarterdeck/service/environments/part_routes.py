"""Routes of the parts of an environment: variables, files, skills, MCP servers and hooks."""

from typing import Annotated

from fastapi import APIRouter, Query

from quarterdeck.service.context import Context
from quarterdeck.service.environments import parts
from quarterdeck.service.environments.hooks import (
    read_hook,
    read_warm_hook,
    save_start_hook,
    save_warm_hook,
)
from quarterdeck.service.environments.routes import EnvironmentRef, environment_router
from quarterdeck.service.environments.skill_registries import search_skills
from quarterdeck.service.identity.service import CallerDep
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
    SaveHook,
    StartHookAnswer,
    WarmHookAnswer,
    WarmHookState,
)
from quarterdeck.wire.setup import HookKind

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
