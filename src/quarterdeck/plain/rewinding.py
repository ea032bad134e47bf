"""Rewind the files of the open replica to the start of a turn."""

from collections.abc import Sequence

from quarterdeck.plain.session import CanceledError, Session
from quarterdeck.store.losses import what_rewinds
from quarterdeck.transcript.text import one_line
from quarterdeck.wire.git import Checkpoint

MOST_CHECKPOINTS = 20
"""Checkpoints that are listed at once."""


async def rewind(session: Session, _: str) -> None:
    """List the checkpoints, and restore the files of the one that is chosen."""
    replica = session.replica
    if replica is None:
        return
    if not replica.record.repositories:
        session.say("The replica has no repository.")
        return
    commands = session.app_state.commands
    checkpoints = await commands.checkpoints(replica.id)
    if not checkpoints:
        session.say("No checkpoints yet. Each turn of the agent starts with one.")
        return
    with session.dialog():
        checkpoint = await _choose(session, checkpoints)
        question = "Inform the agent? yes or no (Enter for yes):"
        while (answer := await session.ask(question) or "yes") not in ("yes", "no"):
            session.say("Type yes or no.")
        chat = answer == "yes"
        session.say(what_rewinds(checkpoint, chat=chat))
    await session.confirm(f"Rewind to {_text(checkpoint)}?")
    await commands.rewind(replica.id, checkpoint.id, chat=chat)
    session.say(
        f"Restored the files of {_moment(checkpoint)}.",
        'To undo it, type rewind and choose the checkpoint "Before a rewind".',
    )


async def _choose(session: Session, checkpoints: Sequence[Checkpoint]) -> Checkpoint:
    """Ask for a checkpoint; Enter lists earlier ones.

    Raises:
        CanceledError: none was chosen.
    """
    listed = 0
    while listed < len(checkpoints):
        page = checkpoints[listed : listed + MOST_CHECKPOINTS]
        session.say(*(f"{number}. {_text(one)}" for number, one in enumerate(page, listed + 1)))
        listed += len(page)
        enter = "for earlier ones" if listed < len(checkpoints) else "to cancel"
        number = await session.ask_number(f"Rewind to which (Enter {enter}):", listed)
        if number is not None:
            return checkpoints[number - 1]
    raise CanceledError


def _text(checkpoint: Checkpoint) -> str:
    return f'{_moment(checkpoint)}, "{one_line(checkpoint.title) or checkpoint.id}"'


def _moment(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.at.astimezone():%d %b %H:%M:%S}"
