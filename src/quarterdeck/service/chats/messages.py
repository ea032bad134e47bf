"""Messages: composed, sent and queued.

Changes of a chat's queue by a person, in every state of the replica.

For an active replica the engine decides: it alone knows which messages have started, and its
journal brings the change into the rows. For any other the rows are changed, and the engine is
notified before it runs anything again (`fleet.reconcile`).

Accepting a message: stored before it is answered, in whatever state the replica is.

| state | answer | also |
|---|---|---|
| active | `sent`, or `queued` after unfinished messages of the chat | |
| preparing | `waking` | |
| sleeping, archived | `waking` | the replica is woken in the same transaction |
| error | WORKSPACE_ERROR_STATE | nothing is stored |
"""

import asyncio
import base64
import binascii
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

from sqlalchemy import Connection

from quarterdeck.engine.link import EngineLink
from quarterdeck.service.agents.service import usable_agent
from quarterdeck.service.chats.delivery import as_delivery, hand_over_up_to
from quarterdeck.service.chats.rows import (
    MODES,
    UNFINISHED,
    UPLOADS,
    MessageState,
    NewMessage,
    Undelivered,
    add_message,
    change_chat,
    count_in,
    find_chat,
    list_chats,
    move_message,
    offered_commands,
    offered_settings,
    order_waiting,
    queue_of,
    state_of,
    undelivered,
    waiting_ids,
)
from quarterdeck.service.chats.service import (
    change_somewhere,
    check_setting,
    known_chat,
    require_chat,
    store_chat,
)
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.event_log import LogWriter
from quarterdeck.service.event_rows import NewEvent
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.fleet.transitions import RESTING, wake_up
from quarterdeck.service.fleet.workspace_manager import WorkspaceManager
from quarterdeck.service.formats import moment_text
from quarterdeck.service.identity.rows import find_user
from quarterdeck.service.identity.service import Caller
from quarterdeck.service.quotas import require_message_room
from quarterdeck.service.replicas.queued_canvas import claim_uploads, uploads_for_message
from quarterdeck.service.replicas.rows import WorkspaceRow, change_workspace, find_workspace
from quarterdeck.wire.agents import BUILTIN
from quarterdeck.wire.chats import (
    MODE_PREFIXES,
    MOST_IMAGES,
    Base64Source,
    Chat,
    Delivery,
    EventChat,
    Image,
    MessageAccepted,
    Queue,
    QueueAnswer,
    ReorderQueue,
    RespondBody,
    SendMessage,
    media_type_of,
)
from quarterdeck.wire.engine import Answer, CancelQueued, OrderQueue, QueueChanged
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import ChatChanged, EventType
from quarterdeck.wire.replicas import CreateReplica, WorkspaceStatus

IMAGE_BYTES = 5 << 20
"""Largest image, decoded."""
URL_LENGTH = 2048

_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/gif": "GIF", "image/webp": "WebP"}


def check_images(images: Sequence[Image] | None) -> None:
    """Check every image; of one given by its URL only the URL is checked.

    Raises:
        ApiError: INVALID_REQUEST, or PAYLOAD_TOO_LARGE for an image over `IMAGE_BYTES`.
    """
    images = images or ()
    if len(images) > MOST_IMAGES:
        raise _refused("images", f"at most {MOST_IMAGES}")
    for place, image in enumerate(images):
        if isinstance(image.source, Base64Source):
            _check_bytes(f"images.{place}.source", image.source)
        else:
            _check_address(f"images.{place}.source.url", image.source.url)


def _check_bytes(field: str, source: Base64Source) -> None:
    try:
        data = base64.b64decode(source.data, validate=True)
    except (binascii.Error, ValueError) as e:
        raise _refused(f"{field}.data", "base64") from e
    if len(data) > IMAGE_BYTES:
        raise ApiError(
            ErrorCode.PAYLOAD_TOO_LARGE,
            "An image is too large.",
            f"{field}.data: at most {IMAGE_BYTES} bytes",
        )
    if media_type_of(data) != source.media_type:
        raise _refused(f"{field}.data", f"not a {_FORMATS[source.media_type]} image")


def _check_address(field: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        named = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError as e:
        raise _refused(field, "no address") from e
    if not named or len(url) > URL_LENGTH or any(ord(character) < 33 for character in url):
        raise _refused(field, f"an http or https address of at most {URL_LENGTH} characters")


def _refused(field: str, rule: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_REQUEST, "The message's images cannot be used.", f"{field}: {rule}"
    )


@dataclass(frozen=True)
class ComposedMessage:
    """A message without a chat: its text without the prefixes, and its attachments and modes."""

    text: str
    delivery: dict[str, Any]
    goal_word: bool = False
    """Whether the goal mode was set by a leading `/goal`."""

    def for_agent(
        self, agent: str, goal_agents: Collection[str], commands: Collection[str]
    ) -> "ComposedMessage":
        """Return the message for an agent that lists these commands of its own.

        Raises:
            ApiError: INVALID_REQUEST for `/goal` when neither we nor the agent provide it.
        """
        if not self.goal_word or agent in goal_agents:
            return self
        if "goal" not in commands:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"{agent} has no goals, and lists no /goal of its own. Leave out /goal.",
                "message: /goal",
            )
        delivery = {name: value for name, value in self.delivery.items() if name != "goal_mode"}
        return ComposedMessage(f"/goal {self.text}", delivery)

    def placed(
        self,
        chat_id: str,
        caller: Caller,
        now: str,
        usual_model: str | None,
        email: str | None = None,
        uploads: Sequence[str] = (),
    ) -> NewMessage:
        """Return the message in a chat; `usual_model` applies where none was ever chosen."""
        delivery = self.delivery
        if usual_model is not None:
            delivery = {**delivery, "usual_model": usual_model}
        if uploads:
            delivery = {**delivery, UPLOADS: list(uploads)}
        return NewMessage(
            id=str(uuid4()),
            chat_id=chat_id,
            text=self.text,
            delivery_json=json.dumps(delivery),
            created_at=now,
            sender_user_id=caller.user_id,
            sender_email=email,
        )


def compose(body: SendMessage | CreateReplica) -> ComposedMessage:
    """Read a request's message: leading `/plan`, `/goal`, `/fast` are stripped and set modes.

    Raises:
        ApiError: INVALID_REQUEST or PAYLOAD_TOO_LARGE for its images.
    """
    check_images(body.images)
    text, modes = split_modes(body.message or "")
    delivery = body.model_dump(
        mode="json",
        include={*MODES, "model", "images", "thinking_level"},
        exclude_none=True,
    )
    return ComposedMessage(text, delivery | modes, "goal_mode" in modes)


def email_of(connection: Connection, caller: Caller) -> str | None:
    """Return the email address of the calling user, if there is one."""
    user = None if caller.user_id is None else find_user(connection, caller.user_id)
    return user and user.email


def split_modes(message: str) -> tuple[str, dict[str, bool]]:
    """Return the text after leading mode words, and the modes. Other white space is kept."""
    modes: dict[str, bool] = {}
    text = message
    while (parts := text.split(maxsplit=1)) and parts[0] in MODE_PREFIXES:
        modes[MODE_PREFIXES[parts[0]]] = True
        text = parts[1] if len(parts) > 1 else ""
    return text, modes


async def read_queue(context: ServiceContext, row: WorkspaceRow, chat_id: UUID) -> Queue:
    """Return the messages of a chat that wait for their turn.

    Raises:
        ApiError: NOT_FOUND.
    """
    chat, waiting = await context.database.read(
        lambda c: (known_chat(c, row.id, chat_id), queue_of(c, str(chat_id)))
    )
    return Queue(chat_id=chat_id, processing=chat.processing, queue=waiting)


async def clear_queue(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, chat_id: UUID
) -> QueueAnswer:
    """Cancel all waiting messages; those that start in the meantime run.

    Raises:
        ApiError: NOT_FOUND.
    """
    waiting = await context.database.read(
        lambda c: (known_chat(c, row.id, chat_id), waiting_ids(c, row.id, str(chat_id)))[1]
    )
    await _cancel(context, fleet, row.id, chat_id, waiting)
    return await queue_answer(context, chat_id)


async def remove_queued(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, chat_id: UUID, message_id: UUID
) -> QueueAnswer:
    """Cancel one message.

    Raises:
        ApiError: NOT_FOUND when it is not in the queue, CONFLICT when it has started.
    """
    await require_waiting(context, row, chat_id, message_id)
    started = await _cancel(context, fleet, row.id, chat_id, [str(message_id)])
    if started:
        raise message_started()
    return await queue_answer(context, chat_id)


async def reorder_queue(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, chat_id: UUID, body: ReorderQueue
) -> QueueAnswer:
    """Give a message another position, from 0; one after the end is the last.

    Raises:
        ApiError: NOT_FOUND when it is not in the queue, CONFLICT when it has started.
    """
    await require_waiting(context, row, chat_id, body.message_id)
    wanted, chat = str(body.message_id), str(chat_id)

    def in_rows(writer: LogWriter) -> bool:
        waiting = waiting_ids(writer.connection, row.id, chat)
        if wanted in waiting:
            moved = _moved(waiting, wanted, body.position)
            order_waiting(writer.connection, row.id, chat, moved)
            append_change(writer, row.id, chat, [])
        return wanted in waiting

    async def in_engine(supervisor: WorkspaceManager, active: WorkspaceRow) -> bool:
        waiting = await context.database.read(lambda c: waiting_ids(c, row.id, chat))
        order = OrderQueue(
            chat_id=chat_id, message_ids=_ids(_moved(waiting, wanted, body.position))
        )

        async def request(link: EngineLink) -> QueueChanged:
            await hand_over_up_to(context.database, link, row.id, chat, wanted, context.clock)
            return await link.queue_order(order)

        changed = await supervisor.change(active, request)
        return body.message_id not in changed.started

    if not await change_somewhere(context, fleet, row.id, in_rows, in_engine):
        raise message_started()
    return await queue_answer(context, chat_id)


async def answer_question(
    context: ServiceContext,
    fleet: Fleet,
    caller: Caller,
    row: WorkspaceRow,
    chat_id: UUID,
    body: RespondBody,
) -> None:
    """Answer an agent's question. A message with the answer comes before those that wait.

    Raises:
        ApiError: NOT_FOUND, WORKSPACE_NOT_ACTIVE, CONFLICT when the question is closed,
            INVALID_REQUEST without exactly one of `optionId` and `text`. The message is canceled.
    """
    if (body.option_id is None) == (body.text is None):
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "An answer is an option or a text.", "optionId or text"
        )
    await require_chat(context, row, chat_id)
    answer = Answer(
        chat_id=chat_id, request_id=body.request_id, option_id=body.option_id, text=body.text
    )
    if body.message is None:
        await fleet.of(row.id).change(row, lambda link: link.chat_respond(answer))
        return
    to_send = SendMessage(message=body.message, chat_id=chat_id)
    sending = await plan_message(context, fleet, caller, row.id, to_send)

    def store(writer: LogWriter) -> Undelivered:
        id = str(store_message(writer, sending).message_id)
        return next(one for one in undelivered(writer.connection, row.id) if one.id == id)

    stored = await context.event_log.write(store)
    answer = answer.model_copy(update={"message": as_delivery(stored)})
    try:
        await fleet.of(row.id).change(row, lambda link: link.chat_respond(answer))
    except ApiError:
        await _cancel(context, fleet, row.id, chat_id, [stored.id])
        raise
    begin_delivery(fleet, row.id)


async def _cancel(
    context: ServiceContext, fleet: Fleet, workspace_id: str, chat_id: UUID, ids: Sequence[str]
) -> list[UUID]:
    """Cancel messages; return those that had already started."""
    chat = str(chat_id)

    def in_rows(writer: LogWriter) -> list[UUID]:
        waiting = waiting_ids(writer.connection, workspace_id, chat)
        canceled = [message_id for message_id in ids if message_id in waiting]
        for message_id in canceled:
            move_message(writer.connection, workspace_id, message_id, MessageState.CANCELED)
        if canceled:
            append_change(writer, workspace_id, chat, canceled)
        return _ids([message_id for message_id in ids if message_id not in waiting])

    async def in_engine(supervisor: WorkspaceManager, active: WorkspaceRow) -> list[UUID]:
        request = CancelQueued(chat_id=chat_id, message_ids=_ids(ids))
        return (await supervisor.change(active, lambda link: link.queue_cancel(request))).started

    return await change_somewhere(context, fleet, workspace_id, in_rows, in_engine)


def append_change(writer: LogWriter, workspace_id: str, chat_id: str, canceled: list[str]) -> None:
    """Append the event that the engine would have sent."""
    chat = known_chat(writer.connection, workspace_id, chat_id)
    changed = ChatChanged(
        chat=EventChat.model_validate(chat.model_dump()),
        queue=waiting_ids(writer.connection, workspace_id, chat_id),
        canceled_message_ids=canceled,
    )
    payload = changed.model_dump(mode="json", exclude={"client_request_id"})
    writer.append(workspace_id, [NewEvent(EventType.CHAT_UPDATED, payload)])


async def require_waiting(
    context: ServiceContext, row: WorkspaceRow, chat_id: UUID, message_id: UUID
) -> None:
    """Check that a message waits.

    Raises:
        ApiError: NOT_FOUND, CONFLICT when it has started.
    """
    state = await context.database.read(
        lambda c: (known_chat(c, row.id, chat_id), state_of(c, str(chat_id), str(message_id)))[1]
    )
    if state in (MessageState.STARTED, MessageState.DONE):
        raise message_started()
    if state in (None, MessageState.CANCELED):
        raise ApiError(ErrorCode.NOT_FOUND, "The queue has no message with this id.", "messageId")


async def queue_answer(context: ServiceContext, chat_id: UUID) -> QueueAnswer:
    """Return what waits in a chat now."""
    waiting = await context.database.read(lambda c: queue_of(c, str(chat_id)))
    return QueueAnswer(success=True, queue=waiting)


def _moved(waiting: Sequence[str], message_id: str, position: int) -> list[str]:
    others = [message for message in waiting if message != message_id]
    return [*others[:position], message_id, *others[position:]]


def _ids(texts: Sequence[str]) -> list[UUID]:
    return [UUID(text) for text in texts]


def message_started() -> ApiError:
    """Return the refusal to change a message that has started."""
    return ApiError(
        ErrorCode.CONFLICT, "The message has started. Interrupt the chat to stop its turn."
    )


@dataclass(frozen=True)
class Sending:
    """One request: the message, its sender, and the chat."""

    workspace_id: str
    body: SendMessage
    composed: ComposedMessage
    caller: Caller
    moment: datetime
    limit: int
    stopping: bool
    goal_agents: frozenset[str]

    @property
    def now(self) -> str:
        return moment_text(self.moment)


async def send_message(
    context: ServiceContext, fleet: Fleet, caller: Caller, workspace_id: str, body: SendMessage
) -> MessageAccepted:
    """Store a message, and wake the replica when it rests.

    Without `chat_id` it goes to the replica's first chat; with `coding_agent` as well, to the first
    chat of that agent, which is created if there is none. A `coding_agent` that is not the named
    chat's is refused: a chat runs one agent.

    Raises:
        ApiError: INVALID_REQUEST, NOT_FOUND for an unknown chat, WORKSPACE_ERROR_STATE,
            WORKSPACE_LIMIT_REACHED when the replica would have to be woken.
    """
    if body.coding_agent is not None:
        await usable_agent(
            context,
            caller.organization_id,
            caller.user_id,
            body.coding_agent,
            "coding_agent",
            workspace_id,
        )
    sending = await plan_message(context, fleet, caller, workspace_id, body)
    accepted = await context.event_log.write(lambda writer: store_message(writer, sending))
    begin_delivery(fleet, workspace_id)
    return accepted


async def plan_message(
    context: ServiceContext, fleet: Fleet, caller: Caller, workspace_id: str, body: SendMessage
) -> Sending:
    """Check a message, except its agent.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    composed = compose(body)
    _check(composed, body)
    now = context.clock()
    goals = await goal_agents(context)
    limit, stopping = fleet.settings.active_limit, fleet.of(workspace_id).stopping
    return Sending(workspace_id, body, composed, caller, now, limit, stopping, goals)


async def goal_agents(context: ServiceContext) -> frozenset[str]:
    """Return the ids of the agents whose chats can have a goal."""
    agents = await asyncio.to_thread(context.agents)
    return frozenset(agent.id for agent in agents if agent.supports_goal)


def begin_delivery(fleet: Fleet, workspace_id: str) -> None:
    """Start to deliver stored messages."""
    supervisor = fleet.of(workspace_id)
    supervisor.begin()
    supervisor.nudge()


def _check(composed: ComposedMessage, body: SendMessage) -> None:
    if not composed.text.strip() and not body.canvas_upload_ids:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "A message needs text or uploads.", "message: empty"
        )


def store_message(writer: LogWriter, sending: Sending) -> MessageAccepted:
    """Store a message, and wake the replica when it rests.

    Raises:
        ApiError: as `send_message`.
    """
    connection = writer.connection
    row = find_workspace(connection, sending.workspace_id)
    if row is None:
        raise ApiError(ErrorCode.NOT_FOUND, "No replica has this id.")
    if row.status == WorkspaceStatus.ERROR:
        raise ApiError(
            ErrorCode.WORKSPACE_ERROR_STATE,
            "The replica has failed. Wake it to try again, then send the message.",
            row.error,
        )
    chat = _chat(writer, row, sending)
    if (level := sending.body.thinking_level) is not None:
        settings = offered_settings(connection, row.organization_id, row.user_id, chat)
        check_setting("thinking_level", level, settings.thinking_level)
    named = list(dict.fromkeys(sending.body.canvas_upload_ids or ()))
    uploads = uploads_for_message(connection, row.id, named, sending.moment)
    ahead = count_in(connection, str(chat.id), UNFINISHED)
    require_message_room(ahead)
    model = row.model if chat.provider == row.coding_agent else None
    email = email_of(connection, sending.caller)
    offered = offered_commands(connection, str(chat.id)) if sending.composed.goal_word else []
    composed = sending.composed.for_agent(
        chat.provider, sending.goal_agents, [str(command.get("name")) for command in offered]
    )
    message = composed.placed(str(chat.id), sending.caller, sending.now, model, email, named)
    add_message(connection, row.id, message)
    claim_uploads(connection, uploads, message.id)
    if chat.plan_ready:
        _answer_plan(writer, row.id, chat)
    change_workspace(connection, row.id, last_activity_at=sending.now)
    if row.status in RESTING:
        wake_up(writer, row, sending.limit)
    if row.status != WorkspaceStatus.ACTIVE or sending.stopping:
        status, position = Delivery.WAKING, None
    elif ahead := ahead + _runs_without_message(connection, chat):
        # The first one runs or is about to: it is not in the queue.
        status, position = Delivery.QUEUED, ahead
    else:
        status, position = Delivery.SENT, None
    return MessageAccepted(
        status=status, message_id=UUID(message.id), position=position, chat_id=chat.id
    )


def _runs_without_message(connection: Connection, chat: Chat) -> bool:
    """Return whether a turn runs that no message began: the agent's own, or one of a goal."""
    started = count_in(connection, str(chat.id), (MessageState.STARTED,))
    return chat.processing and not started


def _answer_plan(writer: LogWriter, workspace_id: str, chat: Chat) -> None:
    """Mark the plan as answered, although the engine that will report it may not run yet."""
    change_chat(writer.connection, workspace_id, str(chat.id), plan_ready=False)
    answered = EventChat.model_validate({**chat.model_dump(), "plan_ready": False})
    payload = {"chat": answered.model_dump(mode="json")}
    writer.append(workspace_id, [NewEvent(EventType.CHAT_UPDATED, payload)])


def _chat(writer: LogWriter, row: WorkspaceRow, sending: Sending) -> Chat:
    connection = writer.connection
    wanted = sending.body.coding_agent
    if sending.body.chat_id is not None:
        return _named(connection, row, str(sending.body.chat_id), wanted)
    for chat in list_chats(connection, row.id):
        if wanted in (None, chat.provider):
            return chat
    provider = wanted or row.coding_agent or BUILTIN
    return store_chat(writer, row.id, str(uuid4()), provider, sending.now)


def _named(connection: Connection, row: WorkspaceRow, chat_id: str, agent: str | None) -> Chat:
    chat = find_chat(connection, row.id, chat_id)
    if chat is None:
        raise ApiError(ErrorCode.NOT_FOUND, "The replica has no chat with this id.")
    if agent not in (None, chat.provider):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"This chat runs {chat.provider}. Leave out chat_id to use another agent.",
            "coding_agent",
        )
    return chat
