"""Skills of an environment, and in registries (specification, operation 18; INTERFACE 7)."""

from typing import Annotated

from fastapi import APIRouter, Query

from quarterdeck.service.auth import CallerDep
from quarterdeck.service.context import Context
from quarterdeck.service.environments.skills import add_skill, list_skills, remove_skill
from quarterdeck.service.routes.environment_paths import EnvironmentRef, environment_router
from quarterdeck.service.skills.searching import search_skills
from quarterdeck.wire.base import GivenId, Success
from quarterdeck.wire.environment_skills import (
    CreateSkill,
    EnvironmentSkillAnswer,
    EnvironmentSkillList,
    FoundSkills,
)

_own = environment_router()
router = APIRouter(tags=["environments"])

QUERY_LIMIT = 1_000


@router.get("/v1/environment-skills/search")
async def search(
    context: Context, caller: CallerDep, q: Annotated[str, Query(max_length=QUERY_LIMIT)] = ""
) -> FoundSkills:
    """Skills of the configured registries, best match first; without a query, all of them."""
    return FoundSkills(skills=await search_skills(context.home, context.sandboxes, q))


@_own.get("/skills")
async def list_all(
    environment: EnvironmentRef, context: Context, caller: CallerDep
) -> EnvironmentSkillList:
    """Every skill that is enabled on the environment."""
    found = await list_skills(context, caller, environment)
    return EnvironmentSkillList(environment_skills=found)


@_own.post("/skills", status_code=201)
async def add(
    environment: EnvironmentRef, body: CreateSkill, context: Context, caller: CallerDep
) -> EnvironmentSkillAnswer:
    """Enables a skill."""
    made = await add_skill(context, caller, environment, body)
    return EnvironmentSkillAnswer(environment_skill=made)


@_own.delete("/skills/{id}")
async def remove(
    environment: EnvironmentRef, id: GivenId, context: Context, caller: CallerDep
) -> Success:
    """Takes a skill away."""
    await remove_skill(context, caller, environment, str(id))
    return Success()


router.include_router(_own)
