"""Routes of the skills of an environment."""

from typing import Annotated

from fastapi import APIRouter, Query

from quarterdeck.service.context import Context
from quarterdeck.service.environments.parts import SKILLS, add_skill
from quarterdeck.service.environments.routes import EnvironmentRef, environment_router
from quarterdeck.service.environments.skill_registries import search_skills
from quarterdeck.service.identity.service import CallerDep
from quarterdeck.wire.base import GivenId, Success
from quarterdeck.wire.environment_parts import (
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
    """Return skills of the configured registries, best match first; without a query, all of them."""
    return FoundSkills(skills=await search_skills(context.home, context.sandboxes, q))


@_own.get("/skills")
async def list_all(
    environment: EnvironmentRef, context: Context, caller: CallerDep
) -> EnvironmentSkillList:
    """Return every skill that is enabled on the environment."""
    skills = await SKILLS.list_own(context, caller, environment)
    return EnvironmentSkillList(environment_skills=skills)


@_own.post("/skills", status_code=201)
async def add(
    environment: EnvironmentRef, body: CreateSkill, context: Context, caller: CallerDep
) -> EnvironmentSkillAnswer:
    """Enable a skill."""
    skill = await add_skill(context, caller, environment, body)
    return EnvironmentSkillAnswer(environment_skill=skill)


@_own.delete("/skills/{id}")
async def remove(
    environment: EnvironmentRef, id: GivenId, context: Context, caller: CallerDep
) -> Success:
    """Take a skill away."""
    await SKILLS.remove(context, caller, environment, str(id))
    return Success()


router.include_router(_own)
