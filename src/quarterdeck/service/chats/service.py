"""Chats of a replica.

Deleting a chat, in every state of the replica.

The row is marked as deleted at once; then the engine is notified, now or when it next runs
(`fleet.reconcile`). Its messages stay in the log.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast, get_args
from uuid import UUID, uuid4

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.service.agents.service import usable_agent
from quarterdeck.service.chats.delivery import open_chat
from quarterdeck.service.chats.rows import (
    Deletion,
    MessageState,
    add_chat,
    change_chat,
    chosen_settings,
    find_chat,
    move_message,
    offered_commands,
    offered_settings,
    waiting_ids,
)
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.event_log import LogWriter
from quarterdeck.service.event_rows import NewEvent
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.fleet.workspace_manager import LOST, WorkspaceManager, require_active
from quarterdeck.service.formats import moment_text
from quarterdeck.service.quotas import require_chat_room
from quarterdeck.service.replicas.rows import BUSY, WorkspaceRow, change_workspace, find_workspace
from quarterdeck.wire.agents import Agent
from quarterdeck.wire.chats import (
    Chat,
    ChatGoal,
    ChatSetting,
    ChatSettings,
    CreateChat,
    EventChat,
    Interrupted,
    SettingValue,
    SlashCommand,
    ThinkingLevel,
    UpdateGoal,
    UpdateSettings,
)
from quarterdeck.wire.engine import ChangeGoal, ChangeSettings, RenameEngineChat
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EventType
from quarterdeck.wire.replicas import WorkspaceStatus


def store_chat(
    writer: LogWriter,
    workspace_id: str,
    chat_id: str,
    provider: str,
    now: str,
    client_request_id: str | None = None,
    **values: Any,
) -> Chat:
    """Store a chat and its event; `values` are further columns. The engine only opens it.

    Raises:
        ApiError: QUOTA_REACHED.
        IntegrityError: the id is taken.
    """
    require_chat_room(writer.connection, workspace_id)
    add_chat(writer.connection, workspace_id, chat_id, provider, now, **values)
    chat = find_chat(writer.connection, workspace_id, chat_id)
    assert chat is not None  # stored just now
    payload: dict[str, Any] = {
        "chat": EventChat.model_validate(chat.model_dump()).model_dump(mode="json")
    }
    if client_request_id is not None:
        payload["clientRequestId"] = client_request_id
    writer.append(workspace_id, [NewEvent(EventType.CHAT_CREATED, payload)])
    return chat


T = TypeVar("T")

ATTEMPTS = 3
"""How often the state of a workspace may change before a call is given up."""


def known_chat(connection: Connection, workspace_id: str, chat_id: UUID | str) -> Chat:
    """Return the chat of an id.

    Raises:
        ApiError: NOT_FOUND.
    """
    chat = find_chat(connection, workspace_id, str(chat_id))
    if chat is None:
        raise ApiError(ErrorCode.NOT_FOUND, "The replica has no chat with this id.")
    return chat


def current(connection: Connection, workspace_id: str) -> WorkspaceRow:
    """Return the workspace as of this transaction.

    Raises:
        ApiError: NOT_FOUND.
    """
    row = find_workspace(connection, workspace_id)
    if row is None:
        raise ApiError(ErrorCode.NOT_FOUND, "No replica has this id.")
    return row


async def require_chat(context: ServiceContext, row: WorkspaceRow, chat_id: UUID) -> None:
    """Note that the replica is active and has the chat.

    Raises:
        ApiError: NOT_FOUND before WORKSPACE_NOT_ACTIVE.
    """
    await context.database.read(lambda c: known_chat(c, row.id, chat_id))
    require_active(row)


async def change_somewhere(
    context: ServiceContext,
    fleet: Fleet,
    workspace_id: str,
    in_rows: Callable[[LogWriter], T],
    in_engine: Callable[[WorkspaceManager, WorkspaceRow], Awaitable[T]],
) -> T:
    """Change the rows of an inactive workspace, or call the engine of an active one.

    `in_rows` runs in the transaction that saw the state. A workspace that stops or starts in the
    meantime is checked again.

    Raises:
        ApiError: NOT_FOUND, the errors of the two, or the engine cannot be reached.
    """

    def run(writer: LogWriter) -> tuple[WorkspaceRow, T | None]:
        row = current(writer.connection, workspace_id)
        active = row.status == WorkspaceStatus.ACTIVE
        return row, None if active else in_rows(writer)

    supervisor = fleet.of(workspace_id)
    for left in reversed(range(ATTEMPTS)):
        await supervisor.stopped()
        row, changed = await context.event_log.write(run)
        if changed is not None:
            return changed
        try:
            return await in_engine(supervisor, row)
        except ApiError as e:
            if not left or not (supervisor.stopping or e.code in _STATE_CHANGED):
                raise
    raise AssertionError("the last attempt returns or raises")


_STATE_CHANGED = (*LOST, ErrorCode.WORKSPACE_NOT_ACTIVE)


log = logging.getLogger(__name__)


async def create_chat(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, body: CreateChat
) -> Chat:
    """Store a chat, in every state of the replica; the engine opens it now or when it next runs.

    Raises:
        ApiError: INVALID_REQUEST for an agent or a parent that cannot be used, CONFLICT for an id
            that is taken, NOT_FOUND, QUOTA_REACHED.
    """
    provider = await usable_agent(
        context, row.organization_id, row.user_id, body.provider, "provider", row.id
    )
    chat_id = str(body.id or uuid4())
    now = moment_text(context.clock())

    def run(writer: LogWriter) -> tuple[WorkspaceRow, Chat]:
        workspace = current(writer.connection, row.id)
        parent = None if body.parent_chat_id is None else str(body.parent_chat_id)
        if parent is not None and find_chat(writer.connection, row.id, parent) is None:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "The replica has no chat with this id.",
                "parentChatId",
            )
        values = {"title": body.title, "parent_chat_id": parent}
        change_workspace(writer.connection, row.id, last_activity_at=now)
        request_id = body.client_request_id
        return workspace, store_chat(writer, row.id, chat_id, provider, now, request_id, **values)

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
    """Set a chat's title.

    Raises:
        ApiError: NOT_FOUND, WORKSPACE_NOT_ACTIVE.
    """
    await require_chat(context, row, chat_id)
    request = RenameEngineChat(chat_id=chat_id, title=title)
    await fleet.of(row.id).change(row, lambda link: link.chat_rename(request))
    return await context.database.read(lambda c: known_chat(c, row.id, chat_id))


async def interrupt_chat(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, chat_id: UUID
) -> Interrupted:
    """Stop the chat's running turn; return when it has ended.

    Raises:
        ApiError: NOT_FOUND, WORKSPACE_NOT_ACTIVE.
    """
    await require_chat(context, row, chat_id)
    done = await fleet.of(row.id).change(row, lambda link: link.chat_interrupt(chat_id))
    return Interrupted(interrupted=done.interrupted, queue=done.queue)


async def slash_commands(
    context: ServiceContext, row: WorkspaceRow, chat_id: UUID
) -> list[SlashCommand]:
    """Return the slash commands, ours first; one of ours hides an agent's of the same name.

    Raises:
        ApiError: NOT_FOUND.
    """
    chat, offered = await context.database.read(
        lambda c: (known_chat(c, row.id, chat_id), offered_commands(c, str(chat_id)))
    )
    agents = await asyncio.to_thread(context.agents)
    ours = [command for command in _ours(agents) if chat.provider in command.providers]
    names = {own.command for own in ours}
    theirs = [command for offer in offered if (command := _theirs(offer, chat.provider))]
    return [*ours, *(command for command in theirs if command.command not in names)]


def _ours(agents: Sequence[Agent]) -> list[SlashCommand]:
    return [
        SlashCommand(
            command="/plan",
            description="Plan, and change nothing.",
            argument_hint="what to plan",
            providers=[agent.id for agent in agents if agent.supports_plan],
        ),
        SlashCommand(
            command="/goal",
            description="Work towards a goal until it is reached.",
            argument_hint="the goal",
            providers=[agent.id for agent in agents if agent.supports_goal],
        ),
        SlashCommand(
            command="/fast",
            description="Answer fast.",
            argument_hint="message",
            providers=[agent.id for agent in agents],
        ),
    ]


def _theirs(offered: dict[str, Any], provider: str) -> SlashCommand | None:
    """Return an agent's command; None for an invalid one, as reports are not checked earlier."""
    name, description, hint_input = (
        offered.get("name"),
        offered.get("description"),
        offered.get("input"),
    )
    if not isinstance(name, str) or not name.strip("/"):
        return None
    hint = cast("dict[str, Any]", hint_input).get("hint") if isinstance(hint_input, dict) else None
    return SlashCommand(
        command=f"/{name.lstrip('/')}",
        description=description if isinstance(description, str) else "",
        argument_hint=hint if isinstance(hint, str) else None,
        providers=[provider],
    )


async def delete_chat(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, chat_id: UUID
) -> None:
    """Interrupt the chat's turn, cancel its waiting messages, and delete it.

    Raises:
        ApiError: NOT_FOUND.
    """
    row = await context.event_log.write(lambda writer: _mark(writer, row.id, str(chat_id)))
    if row.status != WorkspaceStatus.ACTIVE:
        return
    try:
        await fleet.of(row.id).end_chat(row, str(chat_id))
    except ApiError as e:
        log.warning("A deleted chat of %s has not ended yet: %s", row.id, e.message)


def _mark(writer: LogWriter, workspace_id: str, chat_id: str) -> WorkspaceRow:
    connection = writer.connection
    row = current(connection, workspace_id)
    known_chat(connection, workspace_id, chat_id)
    for message_id in waiting_ids(connection, workspace_id, chat_id):
        move_message(connection, workspace_id, message_id, MessageState.CANCELED)
    # A running engine reports the end itself, after the last event of the chat.
    is_final = row.status not in BUSY
    deletion = Deletion.LOGGED if is_final else Deletion.REQUESTED
    change_chat(connection, workspace_id, chat_id, deletion=deletion)
    if is_final:
        writer.append(workspace_id, [NewEvent(EventType.CHAT_DELETED, {"chatId": chat_id})])
    return row


async def read_settings(context: ServiceContext, row: WorkspaceRow, chat_id: UUID) -> ChatSettings:
    """Return what the chat's agent offers, with the values that the next message is sent with.

    Raises:
        ApiError: NOT_FOUND.
    """
    return await context.database.read(lambda c: _settings(c, row, chat_id))


def _settings(connection: Connection, row: WorkspaceRow, chat_id: UUID) -> ChatSettings:
    chat = known_chat(connection, row.id, chat_id)
    offered = offered_settings(connection, row.organization_id, row.user_id, chat)
    values: dict[str, ChatSetting | None] = {}
    for name in ChatSettings.model_fields:
        setting: ChatSetting | None = getattr(offered, name)
        values[name] = setting and setting.model_copy(update={"current": getattr(chat, name)})
    return ChatSettings(**values)


async def change_settings(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, chat_id: UUID, body: UpdateSettings
) -> Chat:
    """Change settings of the chat's agent, in every state of the replica.

    Any model may be named: agents take some unlisted ones.

    Raises:
        ApiError: INVALID_REQUEST without any field or for a value that the agent does not offer,
            NOT_FOUND.
    """
    change: dict[str, str] = body.model_dump(exclude_none=True)
    if not change:
        rule = "permission_mode, model or thinking_level: at least one"
        raise ApiError(ErrorCode.INVALID_REQUEST, "Name at least one setting to change.", rule)
    offered = await read_settings(context, row, chat_id)
    for name in ("permission_mode", "thinking_level"):
        if name in change:
            check_setting(name, change[name], getattr(offered, name))
    names: dict[str, str] = {}
    for name, value in change.items():
        setting: ChatSetting | None = getattr(offered, name)
        choices = setting.choices if setting else []
        name_of = {choice.id: choice.name for choice in choices}
        names[name] = name_of.get(value, value)
    request = ChangeSettings(chat_id=chat_id, **change, names=names)

    async def in_engine(supervisor: WorkspaceManager, active: WorkspaceRow) -> bool:
        await supervisor.change(active, lambda link: link.chat_settings(request))
        return True

    await change_somewhere(
        context, fleet, row.id, lambda writer: _choose(writer, row.id, request), in_engine
    )
    return await context.database.read(lambda c: known_chat(c, row.id, chat_id))


def _choose(writer: LogWriter, workspace_id: str, request: ChangeSettings) -> bool:
    """Store settings for the engine that runs next, and append the event that it would have sent."""
    connection, chat_id = writer.connection, str(request.chat_id)
    known_chat(connection, workspace_id, chat_id)
    earlier = chosen_settings(connection, workspace_id).get(chat_id)
    if earlier is not None:
        before = ChangeSettings.model_validate_json(earlier)
        new = request.model_dump(by_alias=False, exclude_none=True)
        request = before.model_copy(update=new | {"names": before.names | request.names})
    shown: dict[str, str] = {}
    for name in ChatSettings.model_fields:
        value: str | None = getattr(request, name)
        if value is not None:
            setting = SettingValue(id=value, name=request.names.get(name, value))
            shown[f"{name}_json"] = setting.model_dump_json()
    chosen = request.model_dump_json()
    change_chat(connection, workspace_id, chat_id, chosen_json=chosen, **shown)
    chat = EventChat.model_validate(known_chat(connection, workspace_id, chat_id).model_dump())
    payload = {"chat": chat.model_dump(mode="json")}
    writer.append(workspace_id, [NewEvent(EventType.CHAT_UPDATED, payload)])
    return True


def check_setting(name: str, value: str, offered: ChatSetting | None) -> None:
    """Check that a chosen value is known.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    choices = [choice.id for choice in offered.choices] if offered else []
    if name == "thinking_level":
        choices += [level for level in get_args(ThinkingLevel) if level not in choices]
    if value in choices or not choices:
        return
    what = name.replace("_", " ")
    raise ApiError(
        ErrorCode.INVALID_REQUEST,
        f"The chat's agent does not offer the {what} {value}.",
        f"{name}: one of {', '.join(choices)}",
    )


async def change_goal(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, chat_id: UUID, body: UpdateGoal
) -> ChatGoal | None:
    """Set, pause or resume the goal; None on chats whose agent has no goals.

    Raises:
        ApiError: INVALID_REQUEST without any field, NOT_FOUND, WORKSPACE_NOT_ACTIVE, CONFLICT when
            there is no goal to change.
    """
    if not body.model_dump(exclude_none=True):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "Name at least one field to change.",
            "objective, status or token_budget: at least one",
        )
    if body.objective is not None and not body.objective.strip():
        raise ApiError(ErrorCode.INVALID_REQUEST, "A goal needs an objective.", "objective: empty")
    return await _change_goal(context, fleet, row, ChangeGoal(chat_id=chat_id, **body.model_dump()))


async def remove_goal(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, chat_id: UUID
) -> None:
    """Remove the goal, if there is one. A running turn continues; no other follows for the goal.

    Raises:
        ApiError: NOT_FOUND, WORKSPACE_NOT_ACTIVE.
    """
    await _change_goal(context, fleet, row, ChangeGoal(chat_id=chat_id, remove=True))


async def _change_goal(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, change: ChangeGoal
) -> ChatGoal | None:
    await require_chat(context, row, change.chat_id)
    changed = await fleet.of(row.id).change(row, lambda link: link.chat_goal(change))
    return changed.goal and changed.goal.as_goal()
