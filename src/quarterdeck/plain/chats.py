"""The chats of the open replica: list, open, create, rename and delete them, and set their agents."""

from quarterdeck.plain.creation import ask_agent, ask_model, choose
from quarterdeck.plain.replica_lines import chat_line, chat_name
from quarterdeck.plain.session import CanceledError, Session
from quarterdeck.store.creation import models_of
from quarterdeck.transcript.text import one_line
from quarterdeck.wire.chats import ChatSetting

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
