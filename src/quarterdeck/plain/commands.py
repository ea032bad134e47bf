"""The commands, and which line is one: everything else is a message to the open chat."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum

from pydantic import ValidationError

from quarterdeck.plain import chats, getting, replicas
from quarterdeck.plain.automations import AUTOMATION_WORDS, automations
from quarterdeck.plain.creation import create_replica, fork_replica
from quarterdeck.plain.environments import ENVIRONMENT_WORDS, environments
from quarterdeck.plain.replica_lines import list_line, summary_line
from quarterdeck.plain.session import CanceledError, Session
from quarterdeck.plain.transcript_lines import rejection_of, spent_lines, tool_lines
from quarterdeck.store.chats import ChatState
from quarterdeck.store.git import Failed, failure_of
from quarterdeck.store.replica_list import ReplicaFilter
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.transcript.blocks import QuestionBlock, ToolBlock
from quarterdeck.transcript.text import name_line, one_line
from quarterdeck.wire.base import first_error
from quarterdeck.wire.chats import PLAN_APPROVED


class QuitError(Exception):
    """The person leaves."""


class Takes(Enum):
    """What may follow a command; a line with anything else is a message."""

    NOTHING = ""
    NUMBER = "[NUMBER]"
    NAME = "NAME or NUMBER"
    WORD = "[FILTER]"
    TEXT = "TEXT"
    ANSWER = "NUMBER or TEXT"
    REASON = "[REASON]"
    COMMAND = "[COMMAND]"

    def fits(self, rest: str) -> bool:
        """Return whether a text is such a thing."""
        match self:
            case Takes.NOTHING:
                return not rest
            case Takes.NUMBER:
                return not rest or rest.isdecimal()
            case Takes.NAME | Takes.WORD:
                return len(rest.split()) <= 1
            case _:
                return True


@dataclass(frozen=True)
class Command:
    """A command with its help. `chat`: it needs an open chat. `words`: one of them may follow too.

    `named`: words after which the name or number of what they are about may follow.
    """

    run: Callable[[Session, str], Awaitable[None]]
    help: str
    takes: Takes = Takes.NOTHING
    chat: bool = True
    words: Sequence[str] = ()
    named: Sequence[str] = ()

    def fits(self, rest: str) -> bool:
        """Return whether a text may follow it."""
        word, _, name = rest.partition(" ")
        has_name = word in self.named and len(name.split()) == 1
        return rest in self.words or has_name or self.takes.fits(rest)

    @property
    def usage(self) -> str:
        """What may follow it."""
        if not self.words:
            return self.takes.value
        first = [self.takes.value.strip("[]")] if self.takes.value else []
        return f"[{', '.join([*first, *self.words])}]"


async def obey(session: Session, line: str) -> None:
    """Carry out a line, and say what was refused.

    Raises:
        QuitError: the person leaves.
    """
    try:
        await _obey(session, line.strip())
    except CanceledError:
        session.say("Canceled.")
    except ValidationError as error:
        # Of a request that cannot be made: a name with a blank, a text that is too long.
        session.say(f"{first_error(error)}.")
    except Failed as error:
        failure = failure_of(error)
        files = f" Files: {', '.join(failure.files)}." if failure.files else ""
        session.say(one_line(f"{failure.message} {failure.details}{files}"))


async def _obey(session: Session, line: str) -> None:
    word, _, rest = line.partition(" ")
    rest = rest.strip()
    word = ALIASES.get(word.casefold(), word.casefold())
    command = COMMANDS.get(word)
    is_command = command is not None and command.fits(rest)
    chat = session.chat
    if not line:
        return
    if command is not None and is_command and (chat is not None or not command.chat):
        await command.run(session, rest)
    elif command is not None and is_command:
        session.say("No replica is open. Type list, then open and a number.")
    elif chat is not None:
        await _write(session, chat, line)
    elif command is not None:
        session.say(f"Usage: {_usage(word, command)}")
    else:
        session.say(f"There is no command {word}.{_guess(word)} Type help for the commands.")


def _guess(word: str) -> str:
    close = get_close_matches(word, COMMANDS, n=1, cutoff=0.75)
    return f" Did you mean {close[0]}?" if close else ""


async def _write(session: Session, chat: ChatState, line: str) -> None:
    """Send a line, or answer with it the question that waits."""
    if " " not in line and (guess := _guess(line.casefold())):
        session.say(f"{line} is not a command.{guess} To send it, type: say {line}")
        return
    question = next(iter(chat.open_questions), None)
    if question is None:
        await session.send(line)
    elif question.secret:
        session.say("The agent asks for a secret: type answer, then the secret.")
    elif question.takes_text or (line.isdecimal() and 0 < int(line) <= len(question.options or ())):
        await _answer(session, line)
    else:
        session.say("The agent waits for an answer; your message follows it.")
        await session.send(line)


def _usage(name: str, command: Command) -> str:
    return f"{name} {command.usage}".strip()


async def _help(session: Session, _: str) -> None:
    session.say(*(f"{_usage(name, one)}: {one.help}" for name, one in COMMANDS.items()))
    session.say("Any other line is a message to the open chat. Ctrl+C cancels a command.")


async def _list(session: Session, rest: str) -> None:
    services = session.services
    wanted = ReplicaFilter.of(rest)
    shown = [s for s in services.ordered() if wanted.shows(s, services.environment_names)]
    session.numbered = [state.id for state in shown]
    if rest and not shown:
        session.say(f"No replica matches {rest}. To send the line to the agent: say list {rest}")
        return
    session.say(*(list_line(number, state) for number, state in enumerate(shown, 1)))
    if not shown:
        session.say(summary_line(services.ordered()))


async def _open(session: Session, rest: str) -> None:
    if not rest:
        session.say("Open which? Type open and a name or the number of the list.")
    elif (state := _found(session, rest)) is not None:
        await session.open(state)


def _found(session: Session, wanted: str) -> ReplicaState | None:
    """Return the replica of a number or a name, or the only one with such a beginning."""
    replicas = {state.id: state for state in session.services.all()}
    named = [state for state in replicas.values() if state.full_name == wanted]
    named = named or [state for state in replicas.values() if state.name == wanted]
    if not named and wanted.isdecimal():
        ids = session.numbered or [state.id for state in session.services.ordered()]
        chosen = ids[int(wanted) - 1 : int(wanted)] if int(wanted) else []
        named = [replicas[id] for id in chosen if id in replicas]
    named = named or [
        state
        for state in replicas.values()
        if state.full_name.startswith(wanted) or state.name.startswith(wanted)
    ]
    if len(named) == 1:
        return named[0]
    if named:
        session.say(f"{wanted} matches {', '.join(name_line(state.full_name) for state in named)}.")
    else:
        session.say(f"There is no replica {wanted}. Type list to hear them.")
    return None


async def _next(session: Session, _: str) -> None:
    state = session.services.next_waiting(session.replica)
    if state is None:
        session.say("No other replica needs you." if session.replica else "No replica needs you.")
    else:
        await session.open(state)


async def _status(session: Session, _: str) -> None:
    session.say(summary_line(session.services.ordered()))
    replica, chat = session.replica, session.chat
    if replica is None or chat is None:
        session.say("No replica is open.")
        return
    session.say(*session.state_lines(replica), *session.question_lines())
    if chat.transcript is not None and not chat.record.processing:
        session.say(*spent_lines(chat.transcript))
    session.say(*(f"Queued: {entry.message}" for entry in chat.queue))


async def _earlier(session: Session, _: str) -> None:
    session.say(*(await session.earlier() or ["This is the beginning."]))


async def _output(session: Session, rest: str) -> None:
    chat = session.chat
    blocks = reversed(chat.transcript.blocks) if chat and chat.transcript else ()
    calls = [block for block in blocks if isinstance(block, ToolBlock)]
    number = int(rest or 1)
    if not 0 < number <= len(calls):
        session.say("There is no such tool call." if calls else "No tool calls yet.")
    else:
        session.say(*tool_lines(calls[number - 1]))


async def _say(session: Session, rest: str) -> None:
    text = rest
    if not text:
        with session.dialog():
            text = await session.ask_text("Message")
    if text:
        await session.send(text)


def _question(session: Session) -> QuestionBlock | None:
    question = next(iter(session.chat.open_questions), None) if session.chat else None
    if question is None:
        session.say("No question is open. To send a line that begins so: say and the line.")
    return question


async def _answer(session: Session, rest: str) -> None:
    question, replica, chat = _question(session), session.replica, session.chat
    if question is None or replica is None or chat is None:
        return
    respond = session.app_state.commands.respond
    if question.secret:
        with session.dialog():
            secret = await session.console.line("Secret, not shown:", secret=True)
        if not secret:
            raise CanceledError
        await respond(replica.id, chat.id, question.request_id, text=secret)
        return
    chosen = chosen_option(question, rest)
    if chosen is not None:
        await respond(replica.id, chat.id, question.request_id, option_id=chosen)
    elif question.takes_text and rest:
        await respond(replica.id, chat.id, question.request_id, text=rest)
    else:
        session.say(f"{rest or 'That'} is not one of the answers.", *session.question_lines())


def chosen_option(question: QuestionBlock, typed: str) -> str | None:
    """Return the option of a number, a letter, or a name of more than one letter."""
    options = question.options or ()
    wanted = typed.casefold()
    number = int(wanted) if wanted.isdecimal() else 0
    if len(wanted) == 1 and wanted.isascii() and wanted.isalpha():
        number = ord(wanted) - ord("a") + 1
    if number:
        return options[number - 1].id if number <= len(options) else None
    named = [option.id for option in options if one_line(option.name).casefold() == wanted]
    return named[0] if len(named) == 1 else None


async def _reject(session: Session, rest: str) -> None:
    question, replica, chat = _question(session), session.replica, session.chat
    if question is None or replica is None or chat is None:
        return
    option = rejection_of(question)
    if option is None:
        session.say("This question cannot be rejected: choose an answer.")
        return
    respond = session.app_state.commands.respond
    await respond(replica.id, chat.id, question.request_id, option_id=option, message=rest or None)


async def _accept(session: Session, _: str) -> None:
    replica, chat = session.replica, session.chat
    if replica is None or chat is None or not chat.plan_waits:
        session.say("No plan waits for you.")
        return
    await session.send(PLAN_APPROVED, approves=True)


async def _interrupt(session: Session, _: str) -> None:
    replica = session.replica
    if replica is not None and not await session.app_state.commands.interrupt(replica.id):
        session.say("Nothing to interrupt.")


async def _wait(session: Session, _: str) -> None:
    await session.until(session.is_settled)


async def _resend(session: Session, _: str) -> None:
    outbox, chat = session.app_state.outbox, session.chat
    unsure = [m for m in outbox.of_chat(chat.id) if m.state == "unsure"] if chat else []
    for message in unsure:
        await outbox.resend(message)
    session.say(f"Sent again: {len(unsure)}." if unsure else "Every message has arrived.")


async def _drop(session: Session, _: str) -> None:
    outbox, chat = session.app_state.outbox, session.chat
    unsure = [m for m in outbox.of_chat(chat.id) if m.state == "unsure"] if chat else []
    for message in unsure:
        outbox.drop(message)
    session.say(f"Dropped: {len(unsure)}." if unsure else "Every message has arrived.")


async def _close(session: Session, _: str) -> None:
    session.close()
    session.say("Closed. " + summary_line(session.services.ordered()))


async def _quit(session: Session, _: str) -> None:
    raise QuitError


COMMANDS = {
    "help": Command(_help, "these commands.", chat=False),
    "list": Command(_list, "the replicas, those that need you first.", Takes.WORD, chat=False),
    "status": Command(_status, "where you are, and who needs you.", chat=False),
    "next": Command(_next, "open the next replica that needs you.", chat=False),
    "open": Command(_open, "open a replica and read its last turn.", Takes.NAME, chat=False),
    "search": Command(chats.search, "find words in all chats, and open one of them.", chat=False),
    "new": Command(create_replica, "create a replica.", chat=False),
    "fork": Command(fork_replica, "create another replica with the same files and branches."),
    "say": Command(_say, "send a message; without a text, one of several lines.", Takes.TEXT),
    "answer": Command(_answer, "answer the question that waits.", Takes.ANSWER),
    "reject": Command(_reject, "reject it, and tell the agent why.", Takes.REASON),
    "accept": Command(_accept, "approve the plan that waits."),
    "steer": Command(
        chats.steer,
        "send a message into the running turn; without a text, the first one that waits.",
        Takes.TEXT,
    ),
    "join": Command(chats.join, "join the waiting messages into one."),
    "queue": Command(
        chats.queue,
        "the messages that wait; with a word, edit or remove one.",
        words=chats.QUEUE_WORDS,
    ),
    "interrupt": Command(_interrupt, "stop the running turn."),
    "wait": Command(_wait, "until the turn is over or the agent asks."),
    "earlier": Command(_earlier, "read what came before."),
    "output": Command(_output, "the last command's output; 2 for the one before.", Takes.NUMBER),
    "chats": Command(chats.show_chats, "the chats of the replica."),
    "chat": Command(
        chats.chat,
        "open another chat, create one, or delete the open one.",
        Takes.NUMBER,
        words=chats.CHAT_WORDS,
    ),
    "settings": Command(
        chats.settings,
        "what the agent may do, its model and how much it thinks; with a word, choose one.",
        words=tuple(chats.SETTINGS),
    ),
    "changes": Command(
        getting.show_changes, "the changed files; with a number, a file's diff.", Takes.NUMBER
    ),
    "exec": Command(replicas.execute, "run a command in the replica.", Takes.COMMAND),
    "commit": Command(getting.commit, "commit everything in the replica."),
    "fetch": Command(getting.fetch, "fetch its branch into your repository."),
    "apply": Command(getting.apply, "apply its changes to your files, uncommitted."),
    "merge": Command(getting.merge, "fetch its branch and merge it into yours."),
    "push": Command(getting.push, "push its branch to the source of the repository."),
    "pr": Command(
        getting.pull_requests,
        "its pull request, or open one; with a word, merge it that way or have failed checks fixed.",
        words=getting.PULL_REQUEST_WORDS,
    ),
    "rewind": Command(replicas.rewind, "restore its files as they were at the start of a turn."),
    "permissions": Command(
        replicas.permissions,
        "what is answered without asking you; with a word, change the policy, the rules or the cost limit.",
        words=replicas.PERMISSION_WORDS,
    ),
    "resend": Command(_resend, "send messages again that may not have arrived."),
    "drop": Command(_drop, "remove them instead."),
    "rename": Command(chats.rename, "give the chat another title."),
    "sleep": Command(replicas.sleep, "stop its processes and keep its files."),
    "wake": Command(replicas.wake, "start it again, or retry what failed."),
    "archive": Command(replicas.archive, "pack its files away; wake restores them."),
    "delete": Command(replicas.delete, "delete it with its files; asks for its name."),
    "environments": Command(
        environments,
        "what replicas are created from; with a word, and a name, show, create or delete one, "
        "set or remove a variable.",
        chat=False,
        words=ENVIRONMENT_WORDS,
        named=ENVIRONMENT_WORDS[1:],
    ),
    "automations": Command(
        automations,
        "agents on schedules and events; with a word, create one, or with a name do that with one.",
        chat=False,
        words=AUTOMATION_WORDS,
        named=AUTOMATION_WORDS[1:],
    ),
    "close": Command(_close, "leave the replica; it goes on."),
    "quit": Command(_quit, "leave; agents keep running.", chat=False),
}
ALIASES = {"ls": "list", "exit": "quit", "q": "quit", "stop": "interrupt", "?": "help"}
