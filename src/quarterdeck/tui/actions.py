"""Every action of the cockpit: its id, its key, and one line for help.

The same table makes the bindings, the bottom line and the help screen, so none of them can say
something the others do not.
"""

from dataclasses import dataclass
from enum import StrEnum

from textual.binding import Binding


class Where(StrEnum):
    """What must have the focus."""

    ANYWHERE = "Anywhere"
    LIST = "List of replicas"
    CHAT = "Transcript"
    QUEUE = "Waiting messages"
    COMPOSER = "Composer"
    TERMINAL = "Terminal"
    NO_TERMINAL = "A terminal that has ended"


@dataclass(frozen=True)
class Action:
    """`method` is the name after `action_` of the screen, empty for what the widget does itself.

    `brief` stands in the bottom line when not empty.
    """

    id: str
    keys: str
    method: str
    help: str
    brief: str = ""


HELP = Action("app.help", "question_mark", "help", "Keys of what has the focus", "keys")
TO_LIST = Action("app.list", "escape,left", "to_list", "To the list", "list")
WAKE = Action("replica.wake", "w", "wake", "Wake, or try again what failed", "wake")
INTERRUPT = Action("chat.interrupt", "i", "interrupt", "Stop the running turn", "interrupt")

ACTIONS: dict[Where, tuple[Action, ...]] = {
    Where.LIST: (
        Action("replica.new", "n", "new_replica", "Create a replica", "new"),
        Action("replica.open", "enter,right", "open", "Write to the replica", "open"),
        Action("replica.terminal", "t,2", "show('terminal')", "Open the terminal", "terminal"),
        Action("replica.chat", "1", "show('chat')", "Show the chat"),
        Action("chat.interrupt", "i", "interrupt", "Stop the running turn"),
        Action("replica.sleep", "s", "sleep", "Put to sleep: processes end, files stay", "sleep"),
        WAKE,
        Action("replica.delete", "d", "delete", "Delete with all its files (asks)", "delete"),
        HELP,
        Action("app.quit", "q", "leave", "Close the cockpit; everything goes on", "quit"),
    ),
    Where.CHAT: (
        Action(
            "transcript.toggle", "enter", "", "Open or fold a tool call; answer a question", "open"
        ),
        Action("chat.write", "m", "write", "To the composer", "write"),
        INTERRUPT,
        Action("replica.terminal", "t", "show('terminal')", "Open the terminal", "terminal"),
        WAKE,
        TO_LIST,
        Action("transcript.prompt", "[ and ]", "", "To the message before or after", "messages"),
        Action("transcript.next", "tab", "next_part", "To waiting messages, or the composer"),
        HELP,
    ),
    Where.QUEUE: (
        Action(
            "queue.resend", "enter", "", "Send a message again that may not have arrived", "again"
        ),
        Action("queue.edit", "e", "", "Take a message back into the composer", "edit"),
        Action("queue.drop", "d", "", "Drop a message that has not arrived", "drop"),
        Action("queue.back", "escape,tab", "write", "To the composer", "composer"),
        HELP,
    ),
    Where.COMPOSER: (
        Action("composer.send", "enter", "", "Send, or queue behind the running turn", "send"),
        Action(
            "composer.newline", "ctrl+j", "", "New line (also alt+enter, or \\ and enter)", "line"
        ),
        Action("composer.plan", "ctrl+t", "", "Plan mode on or off for the next message", "plan"),
        Action("composer.interrupt", "ctrl+x", "interrupt", "Stop the running turn", "interrupt"),
        Action("composer.transcript", "tab", "to_transcript", "To the transcript", "transcript"),
        Action("composer.queue", "shift+tab", "to_queue", "To the waiting messages"),
        Action("composer.list", "escape", "to_list", "To the list; the draft stays", "list"),
    ),
    Where.TERMINAL: (
        Action(
            "terminal.prefix",
            "ctrl+g",
            "",
            "The one key that the terminal does not get",
            "then l list, 1 chat, c new terminal, n next, x close",
        ),
        Action("terminal.list", "ctrl+g l", "", "To the list (also escape, left)"),
        Action("terminal.chat", "ctrl+g 1", "", "To the chat"),
        Action("terminal.new", "ctrl+g c", "", "Another terminal"),
        Action("terminal.next", "ctrl+g n", "", "The next terminal"),
        Action("terminal.close", "ctrl+g x", "", "Close the terminal"),
        Action("terminal.literal", "ctrl+g ctrl+g", "", "Send ctrl+g itself"),
        Action("terminal.scroll", "shift+pageup", "", "Scroll back"),
    ),
    Where.NO_TERMINAL: (
        Action("terminal.again", "enter", "", "Open a new terminal", "open"),
        Action("terminal.dismiss", "x", "", "Close what has ended", "close"),
        Action("replica.chat", "1", "show('chat')", "Show the chat", "chat"),
        WAKE,
        TO_LIST,
        HELP,
    ),
    Where.ANYWHERE: (
        Action("app.reconnect", "ctrl+r", "reconnect", "Reconnect now"),
        Action("app.keys", "f1", "help", "Keys of what has the focus"),
        Action("app.exit", "ctrl+q", "leave", "Close the cockpit; everything goes on"),
    ),
}


def bindings(where: Where) -> list[Binding]:
    """Bindings of what a screen carries out itself."""
    return [
        Binding(action.keys, action.method, action.help, show=False, id=action.id)
        for action in ACTIONS[where]
        if action.method
    ]


def prompt_bindings(where: Where) -> list[Binding]:
    """The same for a widget of the screen: carried out before the next key is looked at.

    So what is typed ahead goes where the key moved the focus to.
    """
    return [
        Binding(
            action.keys,
            f"screen.{action.method}",
            action.help,
            show=False,
            priority=True,
            id=action.id,
        )
        for action in ACTIONS[where]
        if action.method
    ]


def brief_keys(where: Where) -> tuple[tuple[str, str], ...]:
    """Pairs for the bottom line."""
    return tuple(
        (shown_key(action.keys), action.brief) for action in ACTIONS[where] if action.brief
    )


def shown_key(keys: str) -> str:
    """The first key of an action as a person reads it."""
    return keys.split(",")[0].replace("question_mark", "?")
