"""Actions of the cockpit, the places whose keys differ, names of keys, and the keys that many places share.

The current keys of an action are those of the table unless the user rebound them. A process has one user, and so one
keymap, for both rendering and bindings.
"""

import re
import string
import unicodedata
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple


class KeyContext(StrEnum):
    """Where the focus must be."""

    ANYWHERE = "Global"
    DIALOG = "Any dialog"
    LIST = "List of replicas"
    NARROWING = "Filter"
    TABS = "Tabs of a replica"
    PAGE = "Page"
    HELP = "This help"
    PALETTE = "Commands"
    SETTINGS = "Settings"
    ASKED = "Prompt"
    SHOWN_ONCE = "One-time secret"
    CHAT = "Transcript"
    PERMISSION = "Permission request"
    CHOICE = "Question"
    REJECTION = "Reason of a rejection"
    READING = "Reading a transcript"
    PICTURE = "Image"
    CHAT_FIND = "Search in a transcript"
    QUEUE = "Queue"
    COMPOSER = "Composer"
    COMPOSER_NORMAL = "Composer, in vim's normal mode"
    WRITING = "Writing a message"
    SECRET = "Secret answer"
    CHATS = "Chats of a replica"
    TERMINAL = "Terminal"
    TERMINAL_COMMAND = "Terminal, after its prefix key"
    TERMINAL_READING = "Reading a terminal"
    TERMINAL_FIND = "Searching a terminal"
    TERMINAL_NAME = "Naming a terminal"
    TERMINAL_LINK = "A link in a terminal"
    AUTOMATIONS = "Automations"
    AUTOMATION_FACTS = "Automation"
    AUTOMATION_RUNS = "Automation: runs"
    AUTOMATION_RUN = "Run"
    NO_TERMINAL = "Ended terminal"
    FORM = "Form"
    NEW_REPLICA = "New replica form"
    ENVIRONMENTS = "Environments"
    ENVIRONMENT_GENERAL = "Environment: general"
    ENVIRONMENT_VARIABLES = "Environment: variables"
    ENVIRONMENT_FILES = "Environment: files"
    ENVIRONMENT_SKILLS = "Environment: skills"
    ENVIRONMENT_MCPS = "Environment: MCP servers"
    ENVIRONMENT_HOOKS = "Environment: hooks"
    ENVIRONMENT_POOL = "Environment: warm pool"
    ENVIRONMENT_HOOK = "Environment: one hook"
    SKILL_SEARCH = "Search for skills"
    CONFIRM = "Confirmation"
    UNSAVED = "Unsaved changes"
    FIND = "Search in a text"
    FINDER = "File finder"
    FOUND = "Found files"
    FILE = "File"
    CANVAS = "Canvas"
    CANVAS_FILE = "Canvas file"
    LOCAL_PATH = "Local path"
    HOOKS = "Hook runs"
    HOOK = "Hook output"
    INFO = "Info panel"
    CHANGES = "Changes"
    COMMENT = "Comment on changes"
    SUMMARY = "Review summary"
    SEARCH = "Search in changes"
    COMMIT = "Commit message"
    GET_CHANGES = "Get changes"
    PULL_REQUEST = "Pull request"
    REWIND = "Rewind"
    EXEC = "Run command"
    EXEC_OUTPUT = "Command output"


TYPING = frozenset(
    {
        KeyContext.ANYWHERE,
        KeyContext.ASKED,
        KeyContext.CHATS,
        KeyContext.CHAT_FIND,
        KeyContext.COMMENT,
        KeyContext.COMMIT,
        KeyContext.COMPOSER,
        KeyContext.DIALOG,
        KeyContext.EXEC,
        KeyContext.FIND,
        KeyContext.FINDER,
        KeyContext.FORM,
        KeyContext.LOCAL_PATH,
        KeyContext.NARROWING,
        KeyContext.NEW_REPLICA,
        KeyContext.PALETTE,
        KeyContext.REJECTION,
        KeyContext.SEARCH,
        KeyContext.SECRET,
        KeyContext.SKILL_SEARCH,
        KeyContext.SUMMARY,
        KeyContext.TERMINAL,
        KeyContext.TERMINAL_FIND,
        KeyContext.TERMINAL_NAME,
        KeyContext.WRITING,
    }
)
"""Places where a letter is, or may be, text: no action has a letter as its key there."""

AROUND: dict[KeyContext, tuple[KeyContext, ...]] = {
    KeyContext.LIST: (KeyContext.TABS, KeyContext.ANYWHERE),
    KeyContext.CHAT: (KeyContext.READING, KeyContext.CHATS, KeyContext.ANYWHERE),
    KeyContext.PERMISSION: (KeyContext.CHATS, KeyContext.ANYWHERE),
    KeyContext.CHOICE: (KeyContext.CHATS, KeyContext.ANYWHERE),
    KeyContext.REJECTION: (KeyContext.CHATS, KeyContext.ANYWHERE),
    KeyContext.COMPOSER: (KeyContext.WRITING, KeyContext.CHATS, KeyContext.ANYWHERE),
    KeyContext.COMPOSER_NORMAL: (
        KeyContext.COMPOSER,
        KeyContext.WRITING,
        KeyContext.CHATS,
        KeyContext.ANYWHERE,
    ),
    KeyContext.TERMINAL: (),
    KeyContext.TERMINAL_COMMAND: (),
    KeyContext.TERMINAL_READING: (),
    KeyContext.TERMINAL_FIND: (),
    KeyContext.TERMINAL_NAME: (),
    KeyContext.TERMINAL_LINK: (),
    KeyContext.HELP: (),
    KeyContext.DIALOG: (),
    KeyContext.FORM: (KeyContext.DIALOG,),
    KeyContext.NEW_REPLICA: (KeyContext.DIALOG,),
    KeyContext.GET_CHANGES: (KeyContext.DIALOG,),
    KeyContext.PULL_REQUEST: (KeyContext.DIALOG,),
    KeyContext.REWIND: (KeyContext.DIALOG,),
    KeyContext.CONFIRM: (KeyContext.DIALOG,),
    KeyContext.UNSAVED: (KeyContext.DIALOG,),
    KeyContext.PALETTE: (KeyContext.DIALOG,),
    KeyContext.ASKED: (KeyContext.DIALOG,),
    KeyContext.SHOWN_ONCE: (KeyContext.DIALOG,),
    KeyContext.SKILL_SEARCH: (KeyContext.DIALOG,),
    KeyContext.ENVIRONMENT_HOOK: (KeyContext.DIALOG,),
}
"""The places whose keys also work there; without an entry only those of `ANYWHERE`."""

OWN = "own."
"""Prefix of a method that the focused widget runs instead of its screen."""


class Action(NamedTuple):
    """`method` is the name after `action_`, empty for what the widget does itself.

    It belongs to the screen or the pane that binds the place; `screen.` before it names the screen,
    `own.` the widget itself. A widget that binds an action without a method uses the action's id for
    its binding, or calls `pressed`, so every key can be rebound.

    `brief` is shown in the bottom line unless empty. `fixed` keys are text that is typed, or several
    keys in one line of the help: they cannot be rebound.
    """

    id: str
    keys: str
    method: str
    help: str
    brief: str = ""
    fixed: bool = False

    @property
    def default(self) -> tuple[str, ...]:
        """The default keys."""
        return tuple(self.keys.split(",")) if self.keys else ()


HELP = Action("app.help", "question_mark", "screen.help", "Help for this pane", "keys")
TO_LIST = Action("app.list", "escape,left", "screen.to_list", "Back to list", "list")
BACK = Action("page.back", "escape", "screen.back", "Back to the replicas", "back")
WAKE = Action("replica.wake", "w", "screen.wake", "Wake / retry", "wake")
WRITE = Action("chat.write", "m", "screen.write", "Go to composer", "write")
INTERRUPT = Action("chat.interrupt", "i", "screen.interrupt", "Interrupt", "interrupt")
TERMINAL = Action(
    "replica.terminal", "t", "screen.show('terminal')", "Open the terminal", "terminal"
)
ALL_KEYS = Action("help.all", "question_mark", "every_place", "All keys / this pane")
KEYS = Action("app.keys", "f1", "help", "Help for this pane")
EXIT = Action("app.exit", "ctrl+q", "leave", "Quit (agents keep running)")
QUESTION = Action("chat.question", "alt+q", "screen.question", "Answer the open question")
CHAT = Action("tab.chat", "1,alt+1", "screen.show('chat')", "Chat", "chat")

SHARED_PLACES: dict[KeyContext, tuple[Action, ...]] = {
    KeyContext.PAGE: (BACK, HELP),
    KeyContext.HELP: (ALL_KEYS, Action("help.close", "escape,q,f1", "close", "Close the help")),
    KeyContext.PALETTE: (
        Action("palette.run", "enter", "run", "Run", "run"),
        Action("palette.up", "up,ctrl+p", "move(-1)", "Up"),
        Action("palette.down", "down,ctrl+n", "move(1)", "Down"),
        Action("palette.page-up", "pageup", "move(-10)", "Page up"),
        Action("palette.page-down", "pagedown", "move(10)", "Page down"),
        Action("palette.close", "escape", "close", "Close the palette", "close"),
    ),
    KeyContext.ANYWHERE: (
        Action("app.palette", "ctrl+p", "app.palette", "Search commands and replicas"),
        Action("app.search", "f3", "app.search", "Search in all chats"),
        Action(
            "app.next-waiting",
            "ctrl+right_square_bracket",
            "next_waiting",
            "Go to the next replica that needs you",
        ),
        Action("app.reconnect", "ctrl+r", "reconnect", "Reconnect now"),
        Action("app.suspend", "ctrl+z", "app.suspend_process", "Suspend (fg to return)"),
        KEYS,
        EXIT,
    ),
    KeyContext.DIALOG: (KEYS, EXIT),
}


_NAMED: Final = {
    "slash": "/",
    "backslash": "\\",
    "at": "@",
    "minus": "-",
    "plus": "+",
    "underscore": "_",
}
"""Characters that Textual names differently from Unicode."""
_TEXTUAL: Final = {character: name for name, character in _NAMED.items()}


def _unicode_name(character: str) -> str:
    return re.sub("[- ]", "_", unicodedata.name(character, "").lower())


_SIGNS: Final = {_TEXTUAL.get(one) or _unicode_name(one): one for one in string.punctuation}
_OTHERWISE: Final = {
    "esc": "escape",
    "return": "enter",
    "pgup": "pageup",
    "pgdn": "pagedown",
    "page_up": "pageup",
    "page_down": "pagedown",
    "del": "delete",
    "ins": "insert",
    "control": "ctrl",
    "meta": "alt",
}
_PLAIN: Final = frozenset(
    [
        "escape",
        "enter",
        "tab",
        "backspace",
        "delete",
        "insert",
        "home",
        "end",
        "pageup",
        "pagedown",
        "up",
        "down",
        "left",
        "right",
        "space",
    ]
) | {f"f{number}" for number in range(1, 25)}
_MODIFIERS: Final = ("alt", "ctrl", "shift")
"""In the order of Textual's names."""
_SAME: Final = {
    "ctrl+i": "tab",
    "ctrl+m": "enter",
    "ctrl+left_square_bracket": "escape",
}
"""Terminals send the same for both."""


class InvalidKeyNameError(ValueError):
    """The key is not one that a terminal sends; the text says why."""


def key_name(written: str) -> str:
    """Return Textual's name of a key as a user writes it, such as `?`, `D`, `ctrl+d` or `PgUp`.

    Raises:
        InvalidKeyNameError: unknown key.
    """
    *modifiers, last = _parts(written.strip() or written)
    wanted = {_OTHERWISE.get(modifier.lower(), modifier.lower()) for modifier in modifiers}
    if unknown := wanted.difference(_MODIFIERS):
        raise InvalidKeyNameError(f"{sorted(unknown)[0]!r} is not ctrl, alt or shift")
    name = _last_name(last, wanted)
    key = "+".join([*(modifier for modifier in _MODIFIERS if modifier in wanted), name])
    if key in _SAME:
        raise InvalidKeyNameError(f"terminals send the same for it as for {_SAME[key]}")
    return key


def _parts(written: str) -> list[str]:
    """Return the modifiers and the key, which may be the plus sign itself."""
    if written.endswith("+"):
        return [*(part for part in written[:-1].split("+") if part), "+"]
    return written.split("+")


def _last_name(last: str, modifiers: set[str]) -> str:
    if len(last) == 1:
        if last.isalpha() and "shift" in modifiers and len(modifiers) == 1:
            modifiers.clear()
            return last.upper()
        return _character_name(last.lower() if modifiers else last)
    name = _OTHERWISE.get(last.lower(), last.lower())
    if name in _PLAIN or _character(name) is not None:
        return name
    raise InvalidKeyNameError("unknown key")


def _character_name(character: str) -> str:
    if character == " ":
        return "space"
    if character.isalnum():
        return character
    if not character.isprintable():
        raise InvalidKeyNameError("not a character")
    return _TEXTUAL.get(character) or _unicode_name(character)


def _character(name: str) -> str | None:
    """Return the character of a long name, or None."""
    if name in _SIGNS:
        return _SIGNS[name]
    for spelled in (name.replace("_", " "), name.replace("_", "-")):
        try:
            return unicodedata.lookup(spelled)
        except KeyError:
            continue
    return None


def is_text(key: str) -> bool:
    """Return whether a key inserts text where text is typed."""
    return key == "space" or len(key) == 1 or (key not in _PLAIN and "+" not in key)


def shown_name(key: str) -> str:
    """Return a key as it is displayed."""
    *modifiers, last = key.split("+")
    if len(last) > 1 and last not in _PLAIN:
        last = _character(last) or last
    return "+".join([*modifiers, "esc" if last == "escape" else last])


UNBOUND = "unbound:"
"""Prefix of the name of a key that no terminal sends, one for each action without keys."""

_instead: dict[str, tuple[str, ...]] = {}


def use_keys(instead: Mapping[str, tuple[str, ...]]) -> None:
    """Rebind some actions, by id; all others keep the keys of the table."""
    _instead.clear()
    _instead.update(instead)


def keymap() -> dict[str, str]:
    """Return the bindings that differ from the table, in Textual's format."""
    return {
        action_id: ",".join(keys) or f"{UNBOUND}{action_id}" for action_id, keys in _instead.items()
    }


def keys_of(action: Action) -> tuple[str, ...]:
    """Return the keys of an action, by Textual's names."""
    return _instead.get(action.id, action.default)


def is_rebound(action: Action) -> bool:
    """Return whether the user rebound the action."""
    return action.id in _instead


def shown_keys(action: Action) -> tuple[str, ...]:
    """Return the keys of an action as they are displayed."""
    return tuple(shown_name(key) for key in keys_of(action))


def shown_key(action: Action) -> str:
    """Return the first key of an action as it is displayed; empty when it has none."""
    return next(iter(shown_keys(action)), "")
