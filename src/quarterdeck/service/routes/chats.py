"""Chats (specification, operation 5; INTERFACE 4)."""

from quarterdeck.service.context import Context, Workspace
from quarterdeck.service.conversation.chats import (
    answer_question,
    create_chat,
    interrupt_chat,
    rename_chat,
)
from quarterdeck.service.conversation.commands import slash_commands
from quarterdeck.service.conversation.deleting import delete_chat
from quarterdeck.service.conversation.goals import change_goal
from quarterdeck.service.fleet.fleet import FleetDep
from quarterdeck.service.records.chats import list_chats
from quarterdeck.service.routes import both_families, replica_router
from quarterdeck.wire.base import GivenId, Success
from quarterdeck.wire.chats import (
    ChatAnswer,
    ChatList,
    CreateChat,
    Interrupted,
    RenameChat,
    RespondBody,
    SlashCommands,
)
from quarterdeck.wire.goals import GoalAnswer, UpdateGoal

_replica = replica_router("chats")


@_replica.get("/chats")
async def list_all(context: Context, workspace: Workspace) -> ChatList:
    """All chats, the first made first; served without the engine."""
    return ChatList(chats=await context.database.read(lambda c: list_chats(c, workspace.id)))


@_replica.post("/chats", status_code=201)
async def create(
    body: CreateChat, context: Context, fleet: FleetDep, workspace: Workspace
) -> ChatAnswer:
    """Makes a chat."""
    return ChatAnswer(chat=await create_chat(context, fleet, workspace, body))


@_replica.patch("/chats/{chat_id}")
async def rename(
    chat_id: GivenId, body: RenameChat, context: Context, fleet: FleetDep, workspace: Workspace
) -> ChatAnswer:
    """Gives a chat its title."""
    chat = await rename_chat(context, fleet, workspace, chat_id, body.display_name)
    return ChatAnswer(chat=chat)


@_replica.post("/chats/{chat_id}/interrupt")
async def interrupt(
    chat_id: GivenId, context: Context, fleet: FleetDep, workspace: Workspace
) -> Interrupted:
    """Stops the running turn."""
    return await interrupt_chat(context, fleet, workspace, chat_id)


@_replica.post("/chats/{chat_id}/respond")
async def respond(
    chat_id: GivenId, body: RespondBody, context: Context, fleet: FleetDep, workspace: Workspace
) -> Success:
    """Answers a question of the agent."""
    await answer_question(context, fleet, workspace, chat_id, body)
    return Success()


@_replica.delete("/chats/{chat_id}")
async def delete(
    chat_id: GivenId, context: Context, fleet: FleetDep, workspace: Workspace
) -> Success:
    """Takes a chat away, whatever it is doing; what was said in it stays in the log."""
    await delete_chat(context, fleet, workspace, chat_id)
    return Success()


@_replica.patch("/chats/{chat_id}/goal")
async def goal(
    chat_id: GivenId, body: UpdateGoal, context: Context, fleet: FleetDep, workspace: Workspace
) -> GoalAnswer:
    """Sets, pauses or resumes the goal; null on chats of agents without goals."""
    return GoalAnswer(goal=await change_goal(context, fleet, workspace, chat_id, body))


@_replica.get("/chats/{chat_id}/slash-commands", response_model_exclude_none=True)
async def commands(chat_id: GivenId, context: Context, workspace: Workspace) -> SlashCommands:
    """The words that a message may begin with; served without the engine."""
    return SlashCommands(commands=await slash_commands(context, workspace, chat_id))


router = both_families(_replica)
