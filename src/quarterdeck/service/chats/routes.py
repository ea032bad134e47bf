"""Routes of chats, messages and history."""

from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import Query
from fastapi.responses import Response, StreamingResponse

from quarterdeck.service.chats import service
from quarterdeck.service.chats.history import HistoryQuery, open_page, written
from quarterdeck.service.chats.messages import (
    answer_question,
    clear_queue,
    read_queue,
    remove_queued,
    reorder_queue,
    send_message,
)
from quarterdeck.service.chats.queue_changes import join_queued, steer_queued
from quarterdeck.service.chats.rows import list_chats
from quarterdeck.service.chats.service import (
    create_chat,
    delete_chat,
    interrupt_chat,
    rename_chat,
    slash_commands,
)
from quarterdeck.service.context import Context, Workspace
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import FleetDep
from quarterdeck.service.identity.service import CallerDep
from quarterdeck.service.routing import both_families, replica_router
from quarterdeck.wire.base import DIGITS, GivenId, Success
from quarterdeck.wire.chats import (
    ChatAnswer,
    ChatList,
    ChatSettings,
    CreateChat,
    GoalAnswer,
    Interrupted,
    JoinQueue,
    MessageAccepted,
    Queue,
    QueueAnswer,
    RenameChat,
    ReorderQueue,
    RespondBody,
    SendMessage,
    SlashCommands,
    SteerAnswer,
    UpdateGoal,
    UpdateSettings,
)
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.history import History

_chats_replica = replica_router("chats")


@_chats_replica.get("/chats")
async def list_all(context: Context, workspace: Workspace) -> ChatList:
    """Return all chats, oldest first; served without the engine."""
    return ChatList(chats=await context.database.read(lambda c: list_chats(c, workspace.id)))


@_chats_replica.post("/chats", status_code=201)
async def create(
    body: CreateChat, context: Context, fleet: FleetDep, workspace: Workspace
) -> ChatAnswer:
    """Create a chat."""
    return ChatAnswer(chat=await create_chat(context, fleet, workspace, body))


@_chats_replica.patch("/chats/{chat_id}")
async def rename(
    chat_id: GivenId, body: RenameChat, context: Context, fleet: FleetDep, workspace: Workspace
) -> ChatAnswer:
    """Give a chat its title."""
    chat = await rename_chat(context, fleet, workspace, chat_id, body.display_name)
    return ChatAnswer(chat=chat)


@_chats_replica.post("/chats/{chat_id}/interrupt")
async def interrupt(
    chat_id: GivenId, context: Context, fleet: FleetDep, workspace: Workspace
) -> Interrupted:
    """Stop the running turn."""
    return await interrupt_chat(context, fleet, workspace, chat_id)


@_chats_replica.post("/chats/{chat_id}/respond")
async def respond(
    chat_id: GivenId,
    body: RespondBody,
    context: Context,
    fleet: FleetDep,
    caller: CallerDep,
    workspace: Workspace,
) -> Success:
    """Answer a question of the agent; a message with the answer comes before those that wait."""
    await answer_question(context, fleet, caller, workspace, chat_id, body)
    return Success()


@_chats_replica.delete("/chats/{chat_id}")
async def delete(
    chat_id: GivenId, context: Context, fleet: FleetDep, workspace: Workspace
) -> Success:
    """Delete a chat, even while a turn runs; its events stay in the log."""
    await delete_chat(context, fleet, workspace, chat_id)
    return Success()


@_chats_replica.patch("/chats/{chat_id}/goal")
async def goal(
    chat_id: GivenId, body: UpdateGoal, context: Context, fleet: FleetDep, workspace: Workspace
) -> GoalAnswer:
    """Set, pause or resume the goal; null on chats of agents without service."""
    return GoalAnswer(goal=await service.change_goal(context, fleet, workspace, chat_id, body))


@_chats_replica.delete("/chats/{chat_id}/goal")
async def remove_goal(
    chat_id: GivenId, context: Context, fleet: FleetDep, workspace: Workspace
) -> GoalAnswer:
    """Remove the goal. A running turn continues."""
    await service.remove_goal(context, fleet, workspace, chat_id)
    return GoalAnswer(goal=None)


@_chats_replica.get("/chats/{chat_id}/settings")
async def settings(chat_id: GivenId, context: Context, workspace: Workspace) -> ChatSettings:
    """Return the settings that the agent offers; served without the engine.

    Before the first message they are those that the agent announced in another chat.
    """
    return await service.read_settings(context, workspace, chat_id)


@_chats_replica.patch("/chats/{chat_id}/settings")
async def change_settings(
    chat_id: GivenId,
    body: UpdateSettings,
    context: Context,
    fleet: FleetDep,
    workspace: Workspace,
) -> ChatAnswer:
    """Change settings of the agent, kept over sleep and restarts; a sleeping replica's are applied when it wakes."""
    chat = await service.change_settings(context, fleet, workspace, chat_id, body)
    return ChatAnswer(chat=chat)


@_chats_replica.get("/chats/{chat_id}/slash-commands", response_model_exclude_none=True)
async def commands(chat_id: GivenId, context: Context, workspace: Workspace) -> SlashCommands:
    """Return the commands that a message may begin with; served without the engine."""
    return SlashCommands(commands=await slash_commands(context, workspace, chat_id))


chats_router = both_families(_chats_replica)


_messages_replica = replica_router("messages")


@_messages_replica.post("/messages")
async def send(
    body: SendMessage, context: Context, fleet: FleetDep, caller: CallerDep, workspace: Workspace
) -> MessageAccepted:
    """Accept a message; once answered it is never lost."""
    return await send_message(context, fleet, caller, workspace.id, body)


@_messages_replica.get("/chats/{chat_id}/queue")
async def queue(chat_id: GivenId, context: Context, workspace: Workspace) -> Queue:
    """Return the messages that wait for the running turn; served without the engine."""
    return await read_queue(context, workspace, chat_id)


@_messages_replica.delete("/chats/{chat_id}/queue")
async def clear(
    chat_id: GivenId, context: Context, fleet: FleetDep, workspace: Workspace
) -> QueueAnswer:
    """Cancel everything that waits."""
    return await clear_queue(context, fleet, workspace, chat_id)


@_messages_replica.patch("/chats/{chat_id}/queue/reorder")
async def reorder(
    chat_id: GivenId, body: ReorderQueue, context: Context, fleet: FleetDep, workspace: Workspace
) -> QueueAnswer:
    """Give a message that waits another place."""
    return await reorder_queue(context, fleet, workspace, chat_id, body)


@_messages_replica.post("/chats/{chat_id}/queue/join")
async def join(
    chat_id: GivenId, body: JoinQueue, context: Context, fleet: FleetDep, workspace: Workspace
) -> QueueAnswer:
    """Join waiting messages into one, which takes the first one's place."""
    return await join_queued(context, fleet, workspace, chat_id, body)


@_messages_replica.post("/chats/{chat_id}/queue/{message_id}/steer")
async def steer(
    chat_id: GivenId, message_id: GivenId, context: Context, fleet: FleetDep, workspace: Workspace
) -> SteerAnswer:
    """Put a message that waits into the running turn; 409 when none runs or a question is open."""
    return await steer_queued(context, fleet, workspace, chat_id, message_id)


@_messages_replica.delete("/chats/{chat_id}/queue/{message_id}")
async def remove(
    chat_id: GivenId, message_id: GivenId, context: Context, fleet: FleetDep, workspace: Workspace
) -> QueueAnswer:
    """Cancel a queued message; 409 when it has started."""
    return await remove_queued(context, fleet, workspace, chat_id, message_id)


messages_router = both_families(_messages_replica)


JSON = "application/json"
SHORT_BYTES = 1 << 20
"""A longer history is sent while it is read."""

_history_replica = replica_router("history")


@_history_replica.get("/history", response_model=History)
async def read(
    context: Context,
    workspace: Workspace,
    chat_id: GivenId | None = None,
    limit: Annotated[int | None, Query(ge=1), DIGITS] = None,
    before_event: Annotated[int | None, Query(alias="beforeEvent", ge=0), DIGITS] = None,
    before_turn: Annotated[int | None, Query(alias="beforeTurn", ge=0), DIGITS] = None,
    before_cursor: Annotated[str | None, Query(alias="beforeCursor", max_length=500)] = None,
) -> Response:
    """Return a page from the end; never wakes the workspace.

    A chat of codex has its turns with it, `agentAspTranscript`: those whose end is in the page.
    """
    query = HistoryQuery(
        None if chat_id is None else str(chat_id), limit, before_event, before_turn, before_cursor
    )
    page = await open_page(context.database, context.turn_places, workspace.id, query)
    if page is None:
        raise ApiError(ErrorCode.NOT_FOUND, "No chat of this replica has this id.", "chat_id")
    body = written(context.database, page)
    pieces: list[bytes] = []
    async for piece in body:
        pieces.append(piece)
        if sum(map(len, pieces)) > SHORT_BYTES:
            return StreamingResponse(_joined(pieces, body), media_type=JSON)
    return Response(b"".join(pieces), media_type=JSON)


async def _joined(pieces: list[bytes], rest: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    while pieces:
        yield pieces.pop(0)
    async for piece in rest:
        yield piece


history_router = both_families(_history_replica)
