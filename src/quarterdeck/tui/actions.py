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
    COMPOSER = "Composer"
    TERMINAL = "Terminal"


@dataclass(frozen=True)
class Action:
    """`method` is the name after `action_`; `brief` stands in the bottom line when not empty."""

    id: str
    keys: str
    method: str
    help: str
    brief: str = ""
    priority: bool = False


ACTIONS: dict[Where, tuple[Action, ...]] = {
    Where.LIST: (
        Action("replica.new", "n", "new_replica", "Create a replica", "new"),
        Action("replica.open", "enter", "open", "Write to the replica", "open"),
        Action("replica.chat", "1", "show('chat')", "Show the chat", ""),
        Action("replica.terminal", "t,2", "show('terminal')", "Open the terminal", "terminal"),
        Action("chat.interrupt", "i", "interrupt", "Stop the running turn", "interrupt"),
        Action("replica.sleep", "s", "sleep", "Put to sleep: processes end, files stay", "sleep"),
        Action("replica.wake", "w", "wake", "Wake, or try again what failed", "wake"),
        Action("replica.delete", "d", "delete", "Delete with all its files (asks)", "delete"),
        Action("app.help", "question_mark", "help", "Keys of what has the focus", "keys"),
        Action("app.quit", "q", "leave", "Close the cockpit; everything goes on", "quit"),
    ),
    Where.CHAT: (
        Action(
            "transcript.toggle", "enter", "", "Open or fold a tool call; answer a question", "open"
        ),
        Action("transcript.prompt", "[ and ]", "", "To the message before or after", "messages"),
        Action("chat.write", "m", "write", "To the composer", "write"),
        Action("chat.interrupt", "i", "interrupt", "Stop the running turn", "interrupt"),
        Action("replica.terminal", "t,2", "show('terminal')", "Open the terminal", "terminal"),
        Action("app.list", "escape,left", "to_list", "To the list", "list"),
        Action("app.help", "question_mark", "help", "Keys of what has the focus", "keys"),
    ),
    Where.COMPOSER: (
        Action("composer.send", "enter", "", "Send, or queue behind the running turn", "send"),
        Action(
            "composer.newline", "ctrl+j", "", "New line (also alt+enter, or \\ and enter)", "line"
        ),
        Action("composer.plan", "ctrl+t", "", "Plan mode on or off for the next message", "plan"),
        Action("composer.interrupt", "ctrl+x", "", "Stop the running turn", "interrupt"),
        Action("composer.transcript", "tab", "", "To the transcript", "transcript"),
        Action("app.list", "escape", "to_list", "To the list; the draft stays", "list"),
    ),
    Where.TERMINAL: (
        Action(
            "terminal.prefix", "ctrl+g", "", "The one key that the terminal does not get", "leave"
        ),
        Action("terminal.list", "ctrl+g l", "", "To the list (also escape, left)", ""),
        Action("terminal.chat", "ctrl+g 1", "", "To the chat", ""),
        Action("terminal.new", "ctrl+g c", "", "Another terminal", "new"),
        Action("terminal.next", "ctrl+g n", "", "The next terminal", ""),
        Action("terminal.close", "ctrl+g x", "", "Close the terminal", ""),
        Action("terminal.literal", "ctrl+g ctrl+g", "", "Send ctrl+g itself", ""),
        Action("terminal.scroll", "shift+pageup", "", "Scroll back", ""),
    ),
    Where.ANYWHERE: (
        Action("app.reconnect", "ctrl+r", "reconnect", "Reconnect now", ""),
        Action("app.keys", "f1", "help", "Keys of what has the focus", ""),
        Action("app.exit", "ctrl+q", "leave", "Close the cockpit; everything goes on", "", True),
    ),
}


def bindings(where: Where) -> list[Binding]:
    """Textual bindings of the actions that a screen carries out itself."""
    return [
        Binding(action.keys, action.method, action.help, show=False, id=action.id)
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
