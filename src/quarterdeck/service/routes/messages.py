"""Messages and the queue (INTERFACE 4)."""

from quarterdeck.service.auth import CallerDep
from quarterdeck.service.context import Context, Workspace
from quarterdeck.service.conversation.queueing import (
    clear_queue,
    read_queue,
    remove_queued,
    reorder_queue,
)
from quarterdeck.service.conversation.sending import send_message
from quarterdeck.service.fleet.fleet import FleetDep
from quarterdeck.service.routes import both_families, replica_router
from quarterdeck.wire.base import GivenId
from quarterdeck.wire.messages import MessageAccepted, Queue, QueueAnswer, ReorderQueue, SendMessage

_replica = replica_router("messages")


@_replica.post("/messages")
async def send(
    body: SendMessage, context: Context, fleet: FleetDep, caller: CallerDep, workspace: Workspace
) -> MessageAccepted:
    """Accepts a message; once answered it is never lost."""
    return await send_message(context, fleet, caller, workspace.id, body)


@_replica.get("/chats/{chat_id}/queue")
async def queue(chat_id: GivenId, context: Context, workspace: Workspace) -> Queue:
    """What waits for the running turn; served without the engine."""
    return await read_queue(context, workspace, chat_id)


@_replica.delete("/chats/{chat_id}/queue")
async def clear(
    chat_id: GivenId, context: Context, fleet: FleetDep, workspace: Workspace
) -> QueueAnswer:
    """Cancels everything that waits."""
    return await clear_queue(context, fleet, workspace, chat_id)


@_replica.patch("/chats/{chat_id}/queue/reorder")
async def reorder(
    chat_id: GivenId, body: ReorderQueue, context: Context, fleet: FleetDep, workspace: Workspace
) -> QueueAnswer:
    """Gives a message that waits another place."""
    return await reorder_queue(context, fleet, workspace, chat_id, body)


@_replica.delete("/chats/{chat_id}/queue/{message_id}")
async def remove(
    chat_id: GivenId, message_id: GivenId, context: Context, fleet: FleetDep, workspace: Workspace
) -> QueueAnswer:
    """Cancels one message that waits; 409 when it has started."""
    return await remove_queued(context, fleet, workspace, chat_id, message_id)


router = both_families(_replica)
