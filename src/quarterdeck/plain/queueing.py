"""Messages that wait for the running turn of the open chat: list, edit, remove, join and steer them."""

from quarterdeck.plain.session import CanceledError, Session
from quarterdeck.store.outbox import QueuePlace
from quarterdeck.transcript.text import one_line
from quarterdeck.wire.chats import Delivery

EDIT = "edit"
QUEUE_WORDS = (EDIT, "remove")
"""What may follow `queue`."""


async def queue(session: Session, rest: str) -> None:
    """Say which messages wait; with a word, edit or remove one."""
    replica, chat = session.replica, session.chat
    if replica is None or chat is None:
        return
    commands = session.app_state.chat_commands
    waiting = await commands.read_queue(replica.id, chat.id)
    if not waiting:
        session.say("No message waits.")
        return
    session.say(*(f"{number}. {one_line(one.message)}" for number, one in enumerate(waiting, 1)))
    if not rest:
        return
    with session.dialog():
        number = await session.ask_number(
            f"{rest.capitalize()} which (Enter to cancel):", len(waiting)
        )
        if number is None:
            raise CanceledError
        chosen = waiting[number - 1]
        text = await session.ask_text("The new text") if rest == EDIT else ""
    if rest == EDIT and not text:
        raise CanceledError
    if not await commands.dequeue(replica.id, chat.id, chosen):
        session.say("It has started already.")
        return
    session.forget(str(chosen.id))
    if rest == EDIT:
        before = tuple(one.id for one in waiting[: number - 1])
        if await session.send(text, place=QueuePlace(behind=before)) is not None:
            session.say("Changed.")
    else:
        session.say("Removed.")


async def steer(session: Session, rest: str) -> None:
    """Send a message into the running turn; without a text, the first one that waits."""
    replica, chat = session.replica, session.chat
    if replica is None or chat is None:
        return
    queue = [] if rest else await session.app_state.chat_commands.read_queue(replica.id, chat.id)
    if not rest and not queue:
        session.say("No message waits. To send one into the running turn: steer and the message.")
        return
    if chat.record.processing and not await _may_steer(session, chat.record.provider):
        raise CanceledError
    if not rest:
        message_id = queue[0].id
    else:
        sent = await session.send(rest)
        if sent is None or sent.status != Delivery.QUEUED:
            return
        message_id = sent.message_id
    await session.app_state.chat_commands.steer(replica.id, chat.id, message_id)


async def _may_steer(session: Session, provider: str) -> bool:
    agents = await session.app_state.chat_commands.agents()
    agent = next((one for one in agents if one.id == provider), None)
    if agent is not None and agent.supports_steer:
        return True
    name = one_line(agent.name if agent else provider)
    with session.dialog():
        answer = await session.ask(
            f"{name} takes no messages while it works. Interrupt its turn and send this next? "
            "yes or no:"
        )
    return answer == "yes"


async def join(session: Session, _: str) -> None:
    """Join the messages that wait to one."""
    replica, chat = session.replica, session.chat
    if replica is None or chat is None:
        return
    commands = session.app_state.chat_commands
    waiting = await commands.read_queue(replica.id, chat.id)
    if len(waiting) < 2:
        session.say("Fewer than two messages wait.")
        return
    await commands.join_queued(replica.id, chat.id)
    for message in waiting:
        session.forget(str(message.id))
    session.say(f"Joined {len(waiting)} messages to one.")
