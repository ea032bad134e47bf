"""Giving a forked workspace its files, before its engine is started for the first time.

The newest chat is copied if its agent's session can be exported from the other workspace. Otherwise
the conversation is, as a file `transcript-of-NAME.md` next to the repositories.
"""

import json
import logging
from collections import deque
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection

from quarterdeck.sandboxes.errors import ProcessError, SandboxError
from quarterdeck.sandboxes.port import RepositorySource, SandboxDriver
from quarterdeck.service.chats.history import (
    HistoryScope,
    find_thread,
    newest_within,
    read_payloads,
)
from quarterdeck.service.chats.rows import change_chat, find_chat, list_chats, newest_message_chat
from quarterdeck.service.db.database import Database
from quarterdeck.service.db.faults import retry_until_stored
from quarterdeck.service.event_log import EventLog, LogWriter
from quarterdeck.service.event_rows import NewEvent, git_operation
from quarterdeck.service.formats import storable
from quarterdeck.service.replicas.rows import (
    WorkspaceRow,
    branch_of,
    change_workspace,
    find_workspace,
)
from quarterdeck.wire.chats import Chat, EventChat
from quarterdeck.wire.events import EventType
from quarterdeck.wire.history import AgentEventType, GitOperationPayload
from quarterdeck.wire.saves import SaveFork

_SWITCH = 'git branch -f "$1" HEAD 2>/dev/null; exec git symbolic-ref HEAD "refs/heads/$1"'
"""Changes neither the index nor a file, and continues a merge that is not finished."""
_WRITE = 'exec cat > "$1"'
SESSION_BYTES = 64 << 20
"""Largest session that is copied."""
MOST_EVENTS = 5_000
EVENT_CHARACTERS = 16 << 20
"""Newest events of a chat's history that are copied, and how long they may be together."""
TRANSCRIPT_CHARACTERS = 16 << 20
"""Newest part of a conversation that is written to a file, roughly."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Source:
    """What is forked."""

    row: WorkspaceRow | None
    """The other workspace, unless it was deleted."""
    history: HistoryScope | None
    chats: tuple[Chat, Chat] | None
    """The chat that is copied, and the fork's own that continues it."""
    whole: bool
    """Whether its history is that of this chat, and short enough to be copied."""


async def take_files(
    sandboxes: SandboxDriver,
    database: Database,
    event_log: EventLog,
    row: WorkspaceRow,
    sources: list[RepositorySource],
) -> None:
    """Copy the files, put every repository on its own branch, copy the chat.

    Where the files cannot be reached, the workspace starts from the other one's save. Safe to
    interrupt anywhere and repeat.

    Raises:
        SandboxError: the other workspace has no files, or they cannot be copied.
    """
    assert row.forked_from is not None
    source = await retry_until_stored(lambda: database.read(lambda c: _read(c, row)))
    if not await sandboxes.copy_files(row.forked_from, row.id):
        took_session = await _take_save(sandboxes, database, row, source)
    else:
        branch = branch_of(row.name)
        for repository in await sandboxes.provision(row.id, sources, branch, lambda _: None):
            await _run(sandboxes, row.id, repository.path, _SWITCH, branch)
        took_session = source.chats is not None and await _take_session(
            sandboxes, row, *source.chats
        )
        if source.row is not None and not (took_session and source.whole):
            directory = (await sandboxes.layout(row.id)).workspace_dir
            name = f"{directory}/{_file_name(source.row)}"
            data = (await transcript(database, source.history)).encode()
            await _run(sandboxes, row.id, directory, _WRITE, name, data=data)

    def finish(writer: LogWriter) -> None:
        if source.chats is not None and took_session:
            _take_chat(writer, row, source.row, *source.chats)
        change_workspace(writer.connection, row.id, forked_from=None)

    await retry_until_stored(lambda: event_log.write(finish))


def _read(connection: Connection, row: WorkspaceRow) -> _Source:
    source_id = row.forked_from or ""
    history = find_thread(connection, source_id, None)
    pair = _chats(connection, row)
    thread = pair and find_thread(connection, source_id, str(pair[0].id))
    whole = (
        history is not None
        and thread is not None
        and thread.total == history.total
        and _first_copied(connection, thread) == 0
    )
    return _Source(find_workspace(connection, source_id), history, pair, whole)


def _chats(connection: Connection, row: WorkspaceRow) -> tuple[Chat, Chat] | None:
    own = list_chats(connection, row.id)
    others = [
        chat
        for chat in list_chats(connection, row.forked_from or "")
        if own and chat.provider == own[0].provider
    ]
    newest = newest_message_chat(others)
    return (newest, own[0]) if newest is not None else None


def _first_copied(connection: Connection, thread: HistoryScope) -> int:
    return newest_within(connection, thread, MOST_EVENTS, EVENT_CHARACTERS)


async def _take_session(sandboxes: SandboxDriver, row: WorkspaceRow, chat: Chat, own: Chat) -> bool:
    """Copy the session of a chat's agent; return whether that was possible."""
    assert row.forked_from is not None
    layout, other = await sandboxes.layout(row.id), await sandboxes.layout(row.forked_from)
    if (layout.workspace_dir, layout.home_dir) != (other.workspace_dir, other.home_dir):
        return False  # an agent's session depends on the directory that it started in
    tool = (*layout.interpreter, "-m", "quarterdeck.agents.session_files")
    places = (layout.home_dir, layout.state_dir)
    session = bytearray()
    take = (*tool, "take", *places, str(chat.id), chat.provider)
    try:
        output = sandboxes.stream_command(row.forked_from, take, directory=layout.home_dir)
        async with aclosing(output) as parts:
            async for part in parts:
                session += part
                if len(session) > SESSION_BYTES:
                    return False
        if not session:
            return False
        put = (*tool, "put", *places, str(own.id))
        done = sandboxes.stream_command(row.id, put, directory=layout.home_dir, data=bytes(session))
        async with aclosing(done) as parts:
            async for _ in parts:
                pass
    except (ProcessError, SandboxError) as error:  # the other workspace may be packed by now
        log.warning("the session of chat %s could not be copied: %s", chat.id, error)
        return False
    return True


def _file_name(source: WorkspaceRow) -> str:
    """Return the name of the file with a transcript."""
    return f"transcript-of-{source.name.replace('/', '-')}.md"


async def _take_save(
    sandboxes: SandboxDriver, database: Database, row: WorkspaceRow, source: _Source
) -> bool:
    """Start from the other workspace's save; return whether a chat's session is in it.

    Raises:
        SandboxError: there is none, or it cannot be copied.
    """
    saves = sandboxes.saved_work
    assert row.forked_from is not None and saves is not None
    layout = await sandboxes.layout(row.id)
    home, agents = Path(layout.home_dir).name, f"{Path(layout.state_dir).name}/agents"
    places = {f"{home}/": f"{home}/"}
    took_session = False
    if source.chats is not None:
        chat, own = source.chats
        session = f"{agents}/{chat.id}/"
        places[session] = f"{agents}/{own.id}/"
        took_session = bool(await saves.files(row.forked_from, session))
    written: dict[str, str] = {}
    if source.row is not None and not (took_session and source.whole):
        name = f"{Path(layout.workspace_dir).name}/{_file_name(source.row)}"
        written[name] = await transcript(database, source.history)
    fork = SaveFork(branch=branch_of(row.name), places=places, texts=written)
    await saves.fork(row.forked_from, row.id, fork)
    return took_session


def _take_chat(
    writer: LogWriter, row: WorkspaceRow, source: WorkspaceRow | None, chat: Chat, own: Chat
) -> None:
    """Copy the history of the other chat to the fork's."""
    connection, id = writer.connection, str(own.id)
    thread = find_thread(connection, row.forked_from or "", str(chat.id))
    place = _first_copied(connection, thread) if thread else 0
    while thread is not None and place < thread.total:
        texts, place = read_payloads(connection, thread, place, thread.total)
        deltas = [json.loads(text) | {"chatId": id} for text in texts]
        writer.append(row.id, [NewEvent(EventType.CHAT_TURN_DELTA, delta) for delta in deltas])
    name = source.name if source else "a replica that was deleted"
    forked = GitOperationPayload(operation="fork", text=f"Forked from {name}")
    writer.append(row.id, [git_operation(id, forked)])
    change_chat(connection, row.id, id, title=chat.title, last_message_text=chat.last_message_text)
    if (changed := find_chat(connection, row.id, id)) is not None:
        payload = EventChat.model_validate(changed.model_dump()).model_dump(mode="json")
        writer.append(row.id, [NewEvent(EventType.CHAT_UPDATED, {"chat": payload})])


async def _run(
    sandboxes: SandboxDriver,
    workspace_id: str,
    directory: str,
    script: str,
    *arguments: str,
    data: bytes = b"",
) -> None:
    command = ("/bin/sh", "-c", script, "sh", *arguments)
    running = sandboxes.stream_command(workspace_id, command, directory=directory, data=data)
    try:
        async with aclosing(running) as parts:
            async for _ in parts:
                pass
    except ProcessError as error:
        raise SandboxError("The fork could not be prepared.", str(error)) from error


async def transcript(database: Database, history: HistoryScope | None) -> str:
    """Return the history of a workspace as Markdown: its newest part, if it is long."""
    parts: deque[str] = deque()
    size, place, speaking, shortened = 0, 0, "", False
    while history is not None and place < history.total:
        read = partial(_markdown, history, place, speaking)
        text, speaking, place = await retry_until_stored(partial(database.read, read))
        parts.append(text[-TRANSCRIPT_CHARACTERS:])
        size += len(parts[-1])
        shortened = shortened or len(text) > TRANSCRIPT_CHARACTERS
        while size - len(parts[0]) >= TRANSCRIPT_CHARACTERS:
            size -= len(parts.popleft())
            shortened = True
    start = "(The beginning of this conversation is left out.)\n\n" if shortened else ""
    return start + "".join(parts).strip() + "\n"


def _markdown(
    history: HistoryScope, place: int, speaking: str, connection: Connection
) -> tuple[str, str, int]:
    """Return the Markdown of the next events, who speaks at its end, and where the next ones start.

    Args:
        speaking: who spoke before; "" at the start.
    """
    texts, following = read_payloads(connection, history, place, history.total)
    parts: list[str] = []
    for text in texts:
        who, said = _speech(json.loads(text)["event"])
        if not said:
            continue
        if not who == speaking == "Agent":
            said = "\n\n" + (said.lstrip() if who == "Tool" else f"## {who}\n\n{said.lstrip()}")
            if parts:
                parts[-1] = parts[-1].rstrip()
        parts.append(said)
        speaking = who
    return storable("".join(parts)), speaking, following


def _speech(event: dict[str, Any]) -> tuple[str, str]:
    """Return the speaker and the text of an event."""
    payload = _object(event.get("payload"))
    match event.get("type"), payload.get("sessionUpdate"):
        case AgentEventType.USER_MESSAGE, _:
            return "Person", str(payload.get("text") or "")
        case AgentEventType.SESSION_UPDATE, "agent_message_chunk":
            return "Agent", str(_object(payload.get("content")).get("text") or "")
        case AgentEventType.SESSION_UPDATE, "tool_call":
            title = str(payload.get("title") or "").strip()
            return "Tool", f"    {title}".replace("\n", "\n    ") if title else ""
        case AgentEventType.GIT_OPERATION, _:
            return "Tool", f"    {payload.get('text') or ''}"
        case _:
            return "", ""


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
