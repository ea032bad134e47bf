"""Messages and the queue (INTERFACE 4)."""

from uuid import UUID

from quarterdeck.service.auth import CallerDep
from quarterdeck.service.context import Context, Workspace
from quarterdeck.service.conversation.chats import read_queue
from quarterdeck.service.conversation.sending import send_message
from quarterdeck.service.fleet.fleet import FleetDep
from quarterdeck.service.routes import both_families, replica_router
from quarterdeck.wire.messages import MessageAccepted, Queue, SendMessage

_replica = replica_router("messages")


@_replica.post("/messages")
async def send(
    body: SendMessage, context: Context, fleet: FleetDep, caller: CallerDep, workspace: Workspace
) -> MessageAccepted:
    """Accepts a message; once answered it is never lost."""
    return await send_message(context, fleet, caller, workspace.id, body)


@_replica.get("/chats/{chat_id}/queue")
async def queue(chat_id: UUID, context: Context, workspace: Workspace) -> Queue:
    """What waits for the running turn; served without the engine."""
    return await read_queue(context, workspace, chat_id)


router = both_families(_replica)
