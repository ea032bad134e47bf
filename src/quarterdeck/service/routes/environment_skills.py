"""Skills of an environment (specification, operation 18; INTERFACE 7)."""

from uuid import UUID

from quarterdeck.service.auth import CallerDep
from quarterdeck.service.context import Context
from quarterdeck.service.environments.skills import add_skill, list_skills, remove_skill
from quarterdeck.service.routes.environment_paths import EnvironmentRef, environment_router
from quarterdeck.wire.base import Success
from quarterdeck.wire.environment_skills import (
    CreateSkill,
    EnvironmentSkillAnswer,
    EnvironmentSkillList,
)

router = environment_router()


@router.get("/skills")
async def list_all(
    environment: EnvironmentRef, context: Context, caller: CallerDep
) -> EnvironmentSkillList:
    """Every skill that is enabled on the environment."""
    found = await list_skills(context, caller, environment)
    return EnvironmentSkillList(environment_skills=found)


@router.post("/skills", status_code=201)
async def add(
    environment: EnvironmentRef, body: CreateSkill, context: Context, caller: CallerDep
) -> EnvironmentSkillAnswer:
    """Enables a skill."""
    made = await add_skill(context, caller, environment, body)
    return EnvironmentSkillAnswer(environment_skill=made)


@router.delete("/skills/{id}")
async def remove(
    environment: EnvironmentRef, id: UUID, context: Context, caller: CallerDep
) -> Success:
    """Takes a skill away."""
    await remove_skill(context, caller, environment, str(id))
    return Success()
