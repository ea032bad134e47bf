"""Models and settings that an agent announces are offered to the user of its replica alone."""

from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest

from quarterdeck.service.agents.rows import keep_models
from quarterdeck.service.chats.rows import add_chat, keep_settings
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.formats import now_text
from quarterdeck.wire.agents import AgentModel, AgentModels
from quarterdeck.wire.chats import ChatSetting, ChatSettings, SettingChoice
from tests.service.callers import Callers

New = Callable[..., Awaitable[str]]
AGENT = "builtin"


async def chat_of(
    context: ServiceContext, new_workspace: New, user: str | None
) -> tuple[str, str, str]:
    """A new workspace of a user, its chat, and the path of that."""
    workspace, chat = await new_workspace(context.database, user_id=user), str(uuid4())
    await context.database.write(lambda c: add_chat(c, workspace, chat, AGENT, now_text()))
    return workspace, chat, f"/v1/replica/{workspace}/chats/{chat}"


@pytest.fixture
async def announced(callers: Callers, context: ServiceContext, new_workspace: New) -> str:
    """The name of a model and of a mode that the engine of a member's replica announced."""
    name = "Ask the admin for the key"
    workspace, chat, _ = await chat_of(context, new_workspace, callers.people.member)
    models = AgentModels(models=[AgentModel(id="x", display_name=name)], default_model="x")
    choice = SettingChoice(id="x", name=name, description=name)
    settings = ChatSettings(permission_mode=ChatSetting(choices=[choice]))
    await context.database.write(lambda c: keep_models(c, workspace, chat, models, now_text()))
    await context.database.write(lambda c: keep_settings(c, workspace, chat, settings))
    return name


async def test_models_are_offered_to_the_user_alone(callers: Callers, announced: str) -> None:
    path = f"/v1/agents/{AGENT}/models"
    assert announced in (await callers.member.get(path)).text
    for other in (callers.owner, callers.key):
        answer = await other.get(path)
        assert answer.status_code == 200 and announced not in answer.text
        assert not answer.json()["announced"]


async def test_settings_are_offered_in_replicas_of_the_user_alone(
    callers: Callers, context: ServiceContext, new_workspace: New, announced: str
) -> None:
    people = callers.people
    for user in (people.member, people.owner, None):
        _, _, path = await chat_of(context, new_workspace, user)
        answer = await callers.owner.get(f"{path}/settings")
        assert answer.status_code == 200, answer.text
        assert (announced in answer.text) is (user == people.member)


async def test_announcements_of_users_do_not_replace_each_other(
    callers: Callers, context: ServiceContext, new_workspace: New, announced: str
) -> None:
    for user, name in ((callers.people.owner, "mine"), (None, "ours")):
        workspace, chat, _ = await chat_of(context, new_workspace, user)
        models = AgentModels(models=[AgentModel(id="x", display_name=name)])
        await context.database.write(
            lambda c, of=(workspace, chat), models=models: keep_models(c, *of, models, now_text())
        )
    path = f"/v1/agents/{AGENT}/models"
    shown = ((callers.member, announced), (callers.owner, "mine"), (callers.key, "ours"))
    for caller, name in shown:
        [model] = (await caller.get(path)).json()["models"]
        assert model["displayName"] == name
