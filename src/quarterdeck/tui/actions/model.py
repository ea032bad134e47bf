"""Actions of the cockpit, the places whose keys differ, and the keys that many places share."""

from dataclasses import dataclass
from enum import StrEnum


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


@dataclass(frozen=True)
class Action:
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
