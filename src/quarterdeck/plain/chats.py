"""Chats: those of the open replica, their agents and the messages that wait in them, and search in all."""

from collections.abc import Iterator

from quarterdeck.client.errors import ClientError
from quarterdeck.plain.creation import ask_agent, ask_model, choose
from quarterdeck.plain.replica_lines import chat_line, chat_name
from quarterdeck.plain.session import CanceledError, Session
from quarterdeck.store.creation import models_of
from quarterdeck.store.outbox import QueuePlace
from quarterdeck.transcript.text import name_line, one_line
from quarterdeck.wire.chats import ChatSetting, Delivery
from quarterdeck.wire.search import SearchHit

NEW = "new"
CHAT_WORDS = (NEW, "delete")
"""What may follow `chat`, besides a number."""
SETTINGS = {"mode": "permission_mode", "model": "model", "thinking": "thinking_level"}
"""What may follow `settings`, and what the service calls it."""


async def show_chats(session: Session, _: str) -> None:
    """Say which chats the replica has."""
    replica = session.replica
    chats = replica.ordered_chats if replica else []
    numbered = enumerate(chats, 1)
    session.say(*(chat_line(number, chat, session.agent_of(chat)) for number, chat in numbered))


async def chat(session: Session, rest: str) -> None:
    """Open the chat of a number; with a word, create one or delete the open one."""
    replica = session.replica
    if rest in CHAT_WORDS:
        await (_create(session) if rest == NEW else _delete(session))
        return
    chats = replica.ordered_chats if replica else []
    if replica is None or not (rest and 0 < int(rest) <= len(chats)):
        session.say("Type chats to hear them, then chat and a number.")
    else:
        await session.open(replica, chats[int(rest) - 1].id)


async def _create(session: Session) -> None:
    """Create a chat for an agent, and open it."""
    replica, app_state = session.replica, session.app_state
    if replica is None:
        return
    agents = [agent for agent in await app_state.chat_commands.agents() if agent.available]
    with session.dialog():
        agent = await ask_agent(session, agents)
        if agent is None:
            session.say("No agent can be used.")
            return
        models = await models_of(app_state.client, agent)
        model = await ask_model(session, models) if models else None
    await session.open(replica, await app_state.chat_commands.create(replica.id, agent, model))


async def _delete(session: Session) -> None:
    """Delete the open chat, and open another one of the replica."""
    replica, chat = session.replica, session.chat
    if replica is None or chat is None:
        return
    session.say("Deletes this conversation and stops its current turn. Files are kept.")
    await session.confirm(f"Delete {chat_name(chat, session.agent_of(chat))}?")
    await session.app_state.chat_commands.delete(replica.id, chat.id)
    session.say("Deleted.")
    if replica.chats:
        await session.open(replica)
    else:
        session.close()


async def settings(session: Session, rest: str) -> None:
    """Say how the agent is set; with a word, choose a value."""
    replica, chat = session.replica, session.chat
    if replica is None or chat is None:
        return
    commands = session.app_state.chat_commands
    offered = await commands.settings(replica.id, chat.id)
    known: dict[str, ChatSetting | None] = {
        word: getattr(offered, name) for word, name in SETTINGS.items()
    }
    if not rest:
        lines = [_setting_line(word, setting) for word, setting in known.items() if setting]
        session.say(
            *(lines or ["The agent offers no settings yet: they come with its first turn."])
        )
        return
    setting = known[rest]
    if setting is None or not setting.choices:
        session.say(f"The agent offers no choice of {rest}.")
        return
    with session.dialog():
        chosen = await choose(session, rest, setting.choices, "no change")
    if chosen is None:
        raise CanceledError
    await commands.change_setting(replica.id, chat.id, SETTINGS[rest], chosen.id)
    session.say(f"{rest.capitalize()}: {one_line(chosen.name)}.")


def _setting_line(word: str, setting: ChatSetting) -> str:
    current = one_line(setting.current.name) if setting.current else "the agent's default"
    others = ", ".join(one_line(choice.name) for choice in setting.choices)
    return f"{word.capitalize()}: {current}." + (f" To choose: {others}." if others else "")


async def rename(session: Session, _: str) -> None:
    """Give the open chat another title."""
    replica, chat = session.replica, session.chat
    if replica is None or chat is None:
        return
    with session.dialog():
        name = await session.ask(f"Title of {chat_name(chat, session.agent_of(chat))}:")
    if not name:
        raise CanceledError
    await session.app_state.chat_commands.rename(replica.id, chat.id, name)
    session.say(f"Renamed to {one_line(name)}.")


SPEAKERS = {"user": "you", "agent": "agent", "tool": "tool"}


async def search(session: Session, _: str) -> None:
    """Find words in the chats of all services, the newest first, and open the chat of a number."""
    services = session.services
    with session.dialog():
        words = await session.ask("Words to find; a phrase in quotation marks:")
        if not words:
            raise CanceledError
        hits: list[SearchHit] = []
        for store in services.stores:
            try:
                hits += await store.commands.search(words)
            except ClientError as error:
                if not services.several:
                    raise
                session.say(one_line(f"{store.connection.name}: {error} {error.next_step}"))
        hits.sort(key=lambda hit: hit.ts, reverse=True)
        session.say(*_hit_lines(session, hits))
        if not hits:
            return
        number = await session.ask_number("Open which (Enter for none):", len(hits))
    replica = services.get(hits[number - 1].workspace_id) if number else None
    if number and replica is None:
        session.say("It was deleted.")
    elif number and replica is not None:
        await session.open(replica, hits[number - 1].chat_id)


def _hit_lines(session: Session, hits: list[SearchHit]) -> Iterator[str]:
    if not hits:
        yield "Nothing found. A turn is searched once it has ended."
    for number, hit in enumerate(hits, 1):
        state = session.services.get(hit.workspace_id)
        name = name_line(state.full_name if state else hit.workspace_name)
        yield f"{number}. {name}, {SPEAKERS[hit.role]}: {one_line(hit.excerpt)}"


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
    name = await session.app_state.chat_commands.unsteerable(provider)
    if name is None:
        return True
    with session.dialog():
        return await session.ask_yes(
            f"{name} takes no messages while it works. Interrupt its turn and send this next?"
        )


async def join(session: Session, _: str) -> None:
    """Join the waiting messages into one."""
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
