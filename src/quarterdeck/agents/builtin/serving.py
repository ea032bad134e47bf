"""The built-in agent as a process that speaks the Agent Client Protocol on its standard streams."""

import asyncio
import os
import sys
from pathlib import Path

from quarterdeck.agents.acp.sdk import Connection
from quarterdeck.agents.builtin.agent import BuiltinAgent
from quarterdeck.agents.builtin.sessions import SessionStore
from quarterdeck.agents.session.lines import LineTransport, Message

STATE_VARIABLE = "QUARTERDECK_AGENT_STATE"
_LIMIT = 1 << 18


async def _serve(state: Path) -> None:
    agent = BuiltinAgent(SessionStore(state))
    transport = await _standard_streams()
    connection = Connection(agent.handle, transport, listening=False)
    agent.tell = connection.send_notification
    try:
        await connection.main_loop()
    finally:
        await connection.close()
        await agent.close()


async def _standard_streams() -> LineTransport:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LIMIT)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    pipe, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), sys.stdout
    )
    writer = asyncio.StreamWriter(pipe, protocol, None, loop)
    return LineTransport(reader, writer, _as_it_is)


async def _as_it_is(message: Message) -> Message:
    return message


def run() -> int:
    """Serves until standard input ends; 2 when no state directory is given."""
    state = os.environ.pop(STATE_VARIABLE, "")
    if not state:
        sys.stderr.write(f"{STATE_VARIABLE} names no directory for the sessions.\n")
        return 2
    asyncio.run(_serve(Path(state)))
    return 0
