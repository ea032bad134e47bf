"""Store the journals of engines, and apply them to rows.

From an engine's journal into the log.

The index of the newest stored entry is kept in the workspace's row and moved in the transaction
that stores entries, so each is stored once, whichever process is killed.
"""

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from pydantic import BaseModel, ValidationError
from sqlalchemy import Connection, select

from quarterdeck.engine.link import EngineLink, unreadable
from quarterdeck.service.agents.rows import keep_models
from quarterdeck.service.chats.joining import join, read_parts, store_joined
from quarterdeck.service.chats.rows import (
    JSON_FIELDS,
    Deletion,
    MessageState,
    add_chat,
    change_chat,
    count_chats,
    find_chat,
    keep_settings,
    move_message,
    order_waiting,
    unfinished_ids,
)
from quarterdeck.service.db.faults import retry_until_stored
from quarterdeck.service.db.tables import chats
from quarterdeck.service.environments.rows import add_hook_log
from quarterdeck.service.errors import StorageError, UnknownWorkspaceError
from quarterdeck.service.event_log import EventLog, LogWriter
from quarterdeck.service.event_rows import NewEvent
from quarterdeck.service.formats import moment_text, storable_json
from quarterdeck.service.replicas.rows import (
    change_workspace,
    journal_index_of,
    keep_journal_index,
    keep_pull_requests,
)
from quarterdeck.service.reports import bounded
from quarterdeck.wire.chats import EventChat
from quarterdeck.wire.engine import JournalEntry
from quarterdeck.wire.events import (
    PAYLOADS,
    ChatChanged,
    ChatDeleted,
    EngineReady,
    EventType,
    HooksChanged,
    Payload,
    TurnAccepted,
    TurnCompleted,
    TurnStarted,
)
from quarterdeck.wire.git_state import ReposChanged
from quarterdeck.wire.setup import HOOK_OUTPUT_LIMIT, HookKind, HookLog

TITLE_LENGTH = 100
MOST_CHATS, MOST_STORED_CHATS = 1_000, 10_000
"""Chats of a replica up to which its engine may add more; the second number counts deleted ones too."""
HOOK_NAME_LIMIT, HOOK_SCRIPT_LIMIT, HOOK_COMMANDS = 300, 65_536, 64
"""Characters of a hook's name and of its script, and number of its commands, that a log keeps."""
_HOOK_KINDS = frozenset(HookKind)
HOOK_LOG = "log"
"""Field of `hooks.status` with a hook's log, between the engine and the service only."""
_KEPT: dict[str, tuple[str, ...]] = {
    EventType.HOOKS_STATUS: (HOOK_LOG,),
    EventType.CHAT_UPDATED: ("models", "settings", "joined"),
}
"""Fields that the service keeps as rows."""
_PLAIN = (EventType.CHAT_TURN_DELTA, EventType.ENGINE_STATUS_CHANGED)
"""Frequent ones that change no row; their payload is not parsed."""
_OF_REPOSITORIES = (EventType.REPO_DISCOVERED, EventType.REPO_STATUS_CHANGED)


def project(
    connection: Connection, workspace_id: str, entries: Iterable[JournalEntry]
) -> dict[str, Any]:
    """Apply entries to chats and messages; return the workspace's columns to set."""
    columns: dict[str, Any] = {}
    room = _Room(connection, workspace_id)
    for entry in entries:
        match _payload(entry):
            case EngineReady(version=version):
                columns["engine_version"] = version[:40]
            case ReposChanged(repos=repos):
                columns["repository_statuses_json"] = json.dumps(
                    [repo.model_dump(mode="json") for repo in repos]
                )
            case ChatChanged() as changed:
                _keep_chat(connection, workspace_id, changed.chat, room)
                _keep_queue(connection, workspace_id, changed)
                _keep_models(connection, workspace_id, changed, entry)
            case ChatDeleted(chat_id=id):
                change_chat(connection, workspace_id, id, deletion=Deletion.ENDED)
            case TurnAccepted(message_id=id):
                move_message(connection, workspace_id, id, MessageState.DELIVERED)
            case TurnStarted(message_id=id):
                move_message(connection, workspace_id, id, MessageState.STARTED)
            case TurnCompleted(message_id=id):
                move_message(connection, workspace_id, id, MessageState.DONE)
            case HooksChanged():
                if (hook_log := _hook_log(entry)) is not None:
                    add_hook_log(connection, workspace_id, hook_log)
            case _:
                pass
    return columns


def with_pull_requests(
    connection: Connection, workspace_id: str, entries: Iterable[JournalEntry]
) -> list[JournalEntry]:
    """Return the entries; those about repositories get the known pull requests."""
    stored: list[JournalEntry] = []
    for entry in entries:
        payload = _payload(entry) if entry.type in _OF_REPOSITORIES else None
        if isinstance(payload, ReposChanged):
            keep_pull_requests(connection, workspace_id, payload.repos)
            if any(repo.pr_urls for repo in payload.repos):
                changed = payload.model_dump(mode="json", by_alias=True)
                stored.append(entry.model_copy(update={"payload": changed}))
                continue
        stored.append(entry)
    return stored


def public_payload(entry: JournalEntry) -> dict[str, Any]:
    """Return the payload for the stream, without fields that are stored as rows."""
    kept = _KEPT.get(entry.type, ())
    if not any(name in entry.payload for name in kept):
        return entry.payload
    return {name: value for name, value in entry.payload.items() if name not in kept}


def _payload(entry: JournalEntry) -> Payload | None:
    """Return the typed payload; None for an unknown type or shape, which is stored anyway."""
    try:
        type = EventType(entry.type)
        return (
            None if type in _PLAIN else PAYLOADS[type].model_validate(storable_json(entry.payload))
        )
    except (ValueError, ValidationError):
        return None


def _hook_log(entry: JournalEntry) -> dict[str, Any] | None:
    """Return the run of a hook that an entry of the hooks carries; None for one of another kind.

    Raises:
        ValidationError: it has another shape.
    """
    log = entry.payload.get(HOOK_LOG)
    if log is None:
        return None
    read = HookLog.model_validate(storable_json(log))
    if read.hook_type not in _HOOK_KINDS:
        return None
    read.output_truncated = read.output_truncated or len(read.output) > HOOK_OUTPUT_LIMIT
    read.output = read.output[-HOOK_OUTPUT_LIMIT:]
    read.hook_name = read.hook_name[:HOOK_NAME_LIMIT]
    if read.hook_script is not None:
        read.hook_script = read.hook_script[:HOOK_SCRIPT_LIMIT]
    if read.hook_commands is not None:
        shown = read.hook_commands[:HOOK_COMMANDS]
        read.hook_commands = [text[: HOOK_SCRIPT_LIMIT // HOOK_COMMANDS] for text in shown]
    known = set(HookLog.model_fields)
    return read.model_dump(mode="json", by_alias=True, exclude_unset=True, include=known)


def is_readable(entry: JournalEntry) -> bool:
    """Return whether the payload has the shape of its type; an unknown type has any."""
    try:
        type = EventType(entry.type)
    except ValueError:
        return True
    try:
        try:
            PAYLOADS[type].model_validate(entry.payload)
        except ValidationError:  # perhaps for half of a surrogate pair; looking takes as long again
            PAYLOADS[type].model_validate(storable_json(entry.payload))
        if type == EventType.HOOKS_STATUS:
            _hook_log(entry)
    except ValidationError:
        return False
    return True


class _Room:
    """How many chats an engine may still add to its replica."""

    def __init__(self, connection: Connection, workspace_id: str) -> None:
        self._connection = connection
        self._workspace_id = workspace_id
        self._left: int | None = None

    def take(self) -> bool:
        """Return whether one more chat may be added, and count it."""
        if self._left is None:
            shown, stored = count_chats(self._connection, self._workspace_id)
            self._left = min(MOST_CHATS - shown, MOST_STORED_CHATS - stored)
        self._left -= 1
        return self._left >= 0


def _keep_chat(connection: Connection, workspace_id: str, chat: EventChat, room: _Room) -> None:
    values = {
        "title": chat.title and chat.title[:TITLE_LENGTH],
        "processing": chat.processing,
        "awaiting_input": chat.awaiting_input,
        "last_message_text": chat.last_message_text,
        "plan_ready": chat.plan_ready,
        "turn_failed": chat.turn_failed,
        "processing_since": chat.processing_since and moment_text(chat.processing_since),
        "updated_at": moment_text(chat.updated_at),
        **{f"{name}_json": _json_of(getattr(chat, name)) for name in JSON_FIELDS},
    }
    chat_id = str(chat.id)
    if change_chat(connection, workspace_id, chat_id, **values):
        return
    if _is_elsewhere(connection, chat_id):
        return  # an engine can change only its own rows
    if not room.take():
        log.warning("An engine has more chats than are kept: %s", workspace_id)
        return
    parent = chat.parent_chat_id and str(chat.parent_chat_id)
    if parent and find_chat(connection, workspace_id, parent) is None:
        parent = None
    add_chat(
        connection,
        workspace_id,
        chat_id,
        chat.provider[:100],
        moment_text(chat.created_at),
        parent_chat_id=parent,
        **values,
    )


def _json_of(value: BaseModel | None) -> str | None:
    if value is None:
        return None
    return value.model_dump_json(by_alias=False, include=set(type(value).model_fields))


def _keep_queue(connection: Connection, workspace_id: str, changed: ChatChanged) -> None:
    if changed.joined is not None:
        ids = [str(id) for id in changed.joined.message_ids]
        parts = read_parts(connection, workspace_id, str(changed.chat.id), ids)
        if len(parts) > 1:  # of one, an engine could store copies without end
            store_joined(connection, workspace_id, join(parts, str(changed.joined.message_id)))
    moved = dict.fromkeys(changed.steered_message_ids or (), MessageState.DONE)
    moved |= dict.fromkeys(changed.canceled_message_ids or (), MessageState.CANCELED)
    if moved:  # an engine may name any number of messages: only these are looked for
        for message_id in unfinished_ids(connection, workspace_id) & moved.keys():
            move_message(connection, workspace_id, message_id, moved[message_id])
    if changed.queue is not None:
        order_waiting(connection, workspace_id, str(changed.chat.id), changed.queue)


def _keep_models(
    connection: Connection, workspace_id: str, changed: ChatChanged, entry: JournalEntry
) -> None:
    if changed.models is not None:
        at = moment_text(entry.ts)
        keep_models(connection, workspace_id, str(changed.chat.id), changed.models, at)
    if changed.settings is not None:
        keep_settings(connection, workspace_id, str(changed.chat.id), changed.settings)


def _is_elsewhere(connection: Connection, chat_id: str) -> bool:
    return connection.execute(select(chats.c.id).where(chats.c.id == chat_id)).first() is not None


BATCH = 512
"""Maximum number of entries of one transaction."""

log = logging.getLogger(__name__)

Stored = Callable[[Sequence[JournalEntry]], None]


async def relay(
    link: EngineLink,
    event_log: EventLog,
    workspace_id: str,
    stored: Stored,
    failed: Callable[[StorageError], None] | None = None,
) -> None:
    """Store the journal of a link until it ends, and everything received by then.

    The first entry that arrives is stored at once, and those that arrive during the write make up
    the next one. The first entry with a payload of another shape than its type's is replaced by an
    error, most later ones are left out. `stored` is called with every batch after it is durable, `failed` with each failed
    attempt, which is then repeated.

    Raises:
        UnknownWorkspaceError: the workspace was deleted.
        EngineProtocolError: the engine sent something else than entries.
    """
    earlier, reported = link.hello.last_index, False
    while batch := await link.journal_batch(BATCH):
        readable: list[JournalEntry] = []
        for received in batch:
            entry = bounded(received)
            if entry is not None and is_readable(entry):
                readable.append(entry)
            elif not reported or received is batch[-1]:  # the last one notes how far it was read
                log.error("Entry %d of %s has an unknown shape.", received.index, workspace_id)
                readable.append(unreadable(received.index))
                reported = True
        await retry_until_stored(
            partial(_store, event_log, workspace_id, readable, earlier), failed
        )
        stored(batch)


async def _store(
    event_log: EventLog, workspace_id: str, entries: Sequence[JournalEntry], earlier: int
) -> None:
    await event_log.write(lambda writer: store_entries(writer, workspace_id, entries, earlier))


def store_entries(
    writer: LogWriter, workspace_id: str, entries: Sequence[JournalEntry], earlier: int = 0
) -> int:
    """Store the entries that are newer than the newest stored one; return how many.

    Those up to `earlier` were journaled before the link was opened, the others just now.

    Raises:
        UnknownWorkspaceError: the workspace was deleted.
    """
    newest = journal_index_of(writer.connection, workspace_id)
    if newest is None:
        raise UnknownWorkspaceError(f"There is no workspace {workspace_id}.")
    fresh = [entry for entry in entries if entry.index > newest]
    if not fresh:
        return 0
    fresh = with_pull_requests(writer.connection, workspace_id, fresh)
    # Chats first: an event of a missing chat would have no place in its history.
    columns = project(writer.connection, workspace_id, fresh)
    writer.append(workspace_id, [NewEvent(e.type[:40], public_payload(e), e.ts) for e in fresh])
    activity = _last_activity(fresh, earlier, writer.now())
    keep_journal_index(writer.connection, workspace_id, fresh[-1].index, activity)
    if columns:
        change_workspace(writer.connection, workspace_id, **columns)
    return len(fresh)


def _last_activity(entries: Sequence[JournalEntry], earlier: int, now: datetime) -> str | None:
    """Return when a chat last changed, by the service's clock: the engine's may be wrong."""
    spoken = [entry for entry in entries if entry.type.startswith("chat.")]
    if not spoken:
        return None
    return moment_text(now if spoken[-1].index > earlier else min(spoken[-1].ts, now))
