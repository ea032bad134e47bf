"""The service's end of an engine's link, as the fuzz tests read it."""

import asyncio
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from quarterdeck.engine.errors import EngineError, EngineGoneError, EngineProtocolError
from quarterdeck.engine.link import EngineLink
from quarterdeck.service.relay import HOOK_LOG, is_readable
from quarterdeck.wire.events import PAYLOADS
from tests.security.forged_engine import MOMENT, chat, journal, line


def read_link(data: bytes, _: Path) -> int:
    return asyncio.run(_read_link(data))


async def _read_link(data: bytes) -> int:
    """What the service does with a link: entries are stored by their payloads, frames are sent on."""
    hello = {"version": "1", "workspaceId": str(uuid4()), "lastIndex": 9, "bootTimeMs": 1, "pid": 2}
    here, there = socket.socketpair()
    calls, engine = await asyncio.open_connection(sock=there)
    engine.write(line({"jsonrpc": "2.0", "id": 1, "result": hello}))
    link = await EngineLink.open(*await asyncio.open_connection(sock=here), "x", after=0)
    status = asyncio.create_task(link.status())
    for _ in range(2):  # an answer that comes before its call is ignored
        await calls.readline()
    engine.write(data)
    engine.write_eof()
    # As a service does: who reads one of them only gets nothing once the other is full.
    frames = asyncio.create_task(_read_frames(link))
    last = accepted = 0
    with suppress(EngineError):
        async for entry in link.journal():
            assert entry.index > last
            last = entry.index
            accepted += entry.type in PAYLOADS and is_readable(entry)
    accepted += await frames
    await link.close()
    engine.close()
    (answer,) = await asyncio.gather(status, return_exceptions=True)
    assert not isinstance(answer, BaseException) or isinstance(answer, EngineError), answer
    return accepted + (not isinstance(answer, EngineGoneError | EngineProtocolError))


async def _read_frames(link: EngineLink) -> int:
    frames = 0
    with suppress(EngineError):
        async for _frame in link.terminal_frames():
            frames += 1
    return frames


CHAT = str(UUID(int=1))
OF_TURN = {"chatId": CHAT, "messageId": str(UUID(int=2))}
REPOSITORY = {
    "name": "deck",
    "path": "/workspace/deck",
    "defaultBranch": "main",
    "currentBranch": "qd/one",
    "untracked": ["a"],
}
HOOK_RUN = {
    "hookName": "setup",
    "hookType": "start",
    "hookCommands": ["make"],
    "output": "done",
    "outputTruncated": False,
    "outputTotalChars": 4,
    "exitCode": 0,
    "timedOut": False,
    "executedAt": MOMENT,
}
ENTRIES: list[tuple[str, dict[str, Any]]] = [
    ("engine.ready", {"version": "1"}),
    ("chat.created", {"chat": chat(CHAT, title="One")}),
    ("chat.turn.started", OF_TURN),
    (
        "chat.turn.delta",
        {
            **OF_TURN,
            "event": {
                "timestamp": MOMENT,
                "type": "user-message",
                "payload": {"text": "hello"},
            },
        },
    ),
    ("repo.status.changed", {"repos": [REPOSITORY]}),
    ("hooks.status", {"running": [], "completed": ["setup"], HOOK_LOG: HOOK_RUN}),
    ("preview.changed", {"previews": []}),
    ("error", {"code": "X", "message": "It failed.", "details": {"a": [1]}}),
]
LINK = [
    *(journal(number, type, **payload) for number, (type, payload) in enumerate(ENTRIES, 1)),
    line({"jsonrpc": "2.0", "id": 2, "result": {"idleSeconds": 1.5, "terminals": 1}}),
    line({"jsonrpc": "2.0", "id": 2, "error": {"code": -32000, "message": "no", "data": None}}),
    line(
        {
            "jsonrpc": "2.0",
            "method": "terminal",
            "params": {"offset": 4, "event": {"type": "output", "data": "eA=="}},
        }
    ),
]
