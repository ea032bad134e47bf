"""Put the open replica to sleep, archive or delete it, once the person knows what stops or is lost."""

from quarterdeck.plain.session import CanceledError, Session
from quarterdeck.store.losses import what_goes, what_rests, what_stops
from quarterdeck.transcript.text import name_line


async def sleep(session: Session, _: str) -> None:
    """Stop the replica's processes, and keep its files."""
    replica = session.replica
    if replica is None:
        return
    commands = session.app_state.commands
    await commands.read_programs([replica])
    if stopped := what_stops([replica]):
        session.say(stopped)
        await session.confirm("Put it to sleep?")
    await commands.sleep(replica.id)


async def archive(session: Session, _: str) -> None:
    """Pack the replica's files away."""
    replica = session.replica
    if replica is None:
        return
    commands = session.app_state.commands
    await commands.read_resting([replica])
    await commands.read_programs([replica])
    if known := what_rests([replica]):
        session.say(known)
        await session.confirm("Archive it?")
    await commands.archive(replica.id)


async def delete(session: Session, _: str) -> None:
    """Delete the replica, once its name has been typed."""
    replica = session.replica
    if replica is None:
        return
    commands = session.app_state.commands
    await commands.read_resting([replica])
    name = name_line(replica.full_name)
    with session.dialog():
        session.say(what_goes([replica]))
        if await session.ask(f"Type {name} to delete it:") != name:
            raise CanceledError
    await commands.delete(replica.id)


async def wake(session: Session, _: str) -> None:
    """Start the replica again."""
    if session.replica is not None:
        await session.app_state.commands.wake(session.replica.id)
