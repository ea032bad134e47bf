"""Chats of a replica: made, renamed, interrupted, answered."""

import logging
from uuid import UUID, uuid4

from sqlalchemy.exc import IntegrityError

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.conversation.agents import usable_agent
from quarterdeck.service.conversation.making import store_chat
from quarterdeck.service.conversation.places import current, require_chat
from quarterdeck.service.courier import open_chat
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.log_writer import LogWriter
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.chats import find_chat
from quarterdeck.service.records.workspaces import WorkspaceRow, change_workspace
from quarterdeck.wire.chats import Chat, CreateChat, Interrupted, RespondBody
from quarterdeck.wire.engine import Answer, RenameEngineChat
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.replicas import WorkspaceStatus

log = logging.getLogger(__name__)


async def create_chat(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, body: CreateChat
) -> Chat:
    """Stores a chat, in every state of the replica; the engine opens it now or when it next runs.

    Raises:
        ApiError: INVALID_REQUEST for an agent or a parent that cannot be used, CONFLICT for an id
            that is taken, NOT_FOUND.
    """
    provider = await usable_agent(
        context, row.organization_id, row.user_id, body.provider, "provider", row.id
    )
    chat_id = str(body.id or uuid4())
    now = moment_text(context.clock())

    def run(writer: LogWriter) -> tuple[WorkspaceRow, Chat]:
        found = current(writer.connection, row.id)
        parent = None if body.parent_chat_id is None else str(body.parent_chat_id)
        if parent is not None and find_chat(writer.connection, row.id, parent) is None:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "The replica has no chat with this id.",
                "parentChatId",
            )
        values = {"title": body.title, "parent_chat_id": parent}
        change_workspace(writer.connection, row.id, last_activity_at=now)
        asked = body.client_request_id
        return found, store_chat(writer, row.id, chat_id, provider, now, asked, **values)

    try:
        row, chat = await context.event_log.write(run)
    except IntegrityError as e:
        raise ApiError(ErrorCode.CONFLICT, "A chat has this id already.", f"id: {chat_id}") from e
    if row.status == WorkspaceStatus.ACTIVE:
        await _open_now(fleet, row, chat)
    return chat


async def _open_now(fleet: Fleet, row: WorkspaceRow, chat: Chat) -> None:
    try:
        await fleet.of(row.id).call(row, lambda link: open_chat(link, chat))
    except ApiError as e:
        # It is stored: the engine learns of it with its next link or its first message.
        log.warning("A chat of %s was not opened yet: %s", row.id, e.message)


async def rename_chat(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, chat_id: UUID, title: str
) -> Chat:
    """Gives a chat its title.

    Raises:
        ApiError: NOT_FOUND, WORKSPACE_NOT_ACTIVE.
    """
    await require_chat(context, row, chat_id)
    request = RenameEngineChat(chat_id=chat_id, title=title)
    renamed = await fleet.of(row.id).call(row, lambda link: link.chat_rename(request))
    return renamed.as_chat()


async def interrupt_chat(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, chat_id: UUID
) -> Interrupted:
    """Stops the chat's running turn; answers when it has ended.

    Raises:
        ApiError: NOT_FOUND, WORKSPACE_NOT_ACTIVE.
    """
    await require_chat(context, row, chat_id)
    return await fleet.of(row.id).call(row, lambda link: link.chat_interrupt(chat_id))


async def answer_question(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, chat_id: UUID, body: RespondBody
) -> None:
    """Answers what an agent asked.

    Raises:
        ApiError: NOT_FOUND, WORKSPACE_NOT_ACTIVE, CONFLICT when it is no longer awaited,
            INVALID_REQUEST without exactly one of `optionId` and `text`.
    """
    if (body.option_id is None) == (body.text is None):
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "An answer is an option or a text.", "optionId or text"
        )
    await require_chat(context, row, chat_id)
    answer = Answer(
        chat_id=chat_id, request_id=body.request_id, option_id=body.option_id, text=body.text
    )
    await fleet.of(row.id).call(row, lambda link: link.chat_respond(answer))
