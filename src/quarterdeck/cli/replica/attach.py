"""`qd replica attach`: this terminal becomes one in the sandbox."""

import asyncio
import os
import sys
from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.errors import NotDone, UsageFault
from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import put_json, say
from quarterdeck.cli.replica.find import find_replica
from quarterdeck.cli.running import with_client
from quarterdeck.wire.terminals import (
    MAX_COLS,
    MAX_ROWS,
    MIN_COLS,
    MIN_ROWS,
    TerminalSession,
)

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="attach")
@click.option("--session", metavar="SESSION", help="A session: its id, a prefix of it, or title.")
@click.option("--new", is_flag=True, help="Open a new session.")
@replica_argument
@common_options
def command(common: Common, replica: str, session: str | None, new: bool) -> None:
    """Attach this terminal to one in the sandbox; Ctrl+] detaches, and the session goes on.

    Without options the first session that runs is used, or one is opened.
    """
    if session and new:
        raise UsageFault("Give one of --session and --new.")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageFault("Attaching needs a terminal.", "For a command use: qd replica exec.")

    async def work(client: "Client") -> None:
        replica_id = await find_replica(client, replica)
        chosen = await _choose(client, replica_id, session, new)
        await _attach(client, common, replica_id, chosen)

    with_client(common, work)


async def _choose(
    client: "Client", replica_id: UUID, wanted: str | None, new: bool
) -> TerminalSession:
    running = [known for known in await client.terminals.list(replica_id) if not known.exited]
    if wanted is not None:
        found = [known for known in running if _is_meant(known, wanted)]
        if len(found) != 1:
            raise NotDone(f"{len(found) or 'No'} running sessions fit {wanted!r}.")
        return found[0]
    if running and not new:
        return min(running, key=lambda known: known.created_at)
    return await client.terminals.create(replica_id, *terminal_size())


def _is_meant(session: TerminalSession, wanted: str) -> bool:
    return session.title == wanted or str(session.id).startswith(wanted.lower())


def terminal_size() -> tuple[int, int]:
    """Columns and rows of this terminal, within what the contract allows."""
    size = os.get_terminal_size(sys.stdout.fileno())
    cols = max(MIN_COLS, min(MAX_COLS, size.columns or 80))
    return cols, max(MIN_ROWS, min(MAX_ROWS, size.lines or 24))


async def _attach(
    client: "Client", common: Common, replica_id: UUID, session: TerminalSession
) -> None:
    from quarterdeck.cli.replica.attachment import Attachment, Detached

    say(f"Attached to {session.title}. Ctrl+] detaches; the session goes on.")
    attachment = Attachment(client, replica_id, session.id, terminal_size)
    try:
        status = await attachment.run()
    except asyncio.CancelledError:
        say("Detached.")
        raise
    except Detached:
        if common.json:
            put_json({"session": session.id, "exited": False, "exit_code": None})
        say("Detached; the session goes on.")
        return
    if common.json:
        put_json({"session": session.id, "exited": True, "exit_code": status})
    say(f"The shell ended{'' if status is None else f' with status {status}'}.")
