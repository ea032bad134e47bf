"""What an action of the cockpit is, and the places whose keys differ."""

from dataclasses import dataclass
from enum import StrEnum


class Where(StrEnum):
    """What must have the focus."""

    ANYWHERE = "Outside dialogs"
    DIALOG = "Any dialog"
    LIST = "List of replicas"
    NARROWING = "Words that narrow the list"
    TABS = "Tabs of a replica"
    PAGE = "A page"
    HELP = "This help"
    PALETTE = "Commands"
    SETTINGS = "Settings"
    ASKED = "A line that is asked for"
    SHOWN_ONCE = "A text shown once"
    CHAT = "Transcript"
    READING = "Reading a transcript"
    PICTURE = "A picture"
    CHAT_FIND = "Finding in a transcript"
    QUEUE = "Waiting messages"
    COMPOSER = "Composer"
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
    AUTOMATION_FACTS = "Facts of an automation"
    AUTOMATION_RUNS = "Runs of an automation"
    AUTOMATION_RUN = "A run"
    NO_TERMINAL = "A terminal that has ended"
    FORM = "A form"
    NEW_REPLICA = "A form for a new replica"
    ENVIRONMENTS = "Environments"
    ENVIRONMENT_GENERAL = "What an environment is"
    ENVIRONMENT_VARIABLES = "Variables of an environment"
    ENVIRONMENT_FILES = "Files of an environment"
    ENVIRONMENT_SKILLS = "Skills of an environment"
    ENVIRONMENT_MCPS = "MCP servers of an environment"
    ENVIRONMENT_HOOKS = "Hooks of an environment"
    ENVIRONMENT_POOL = "Warm pool of an environment"
    ENVIRONMENT_HOOK = "A hook of an environment"
    SKILL_SEARCH = "Search for skills"
    CONFIRM = "A question before something is done"
    UNSAVED = "A form with changes that are not saved"
    FIND = "Finding in a text"
    FINDER = "Finder of files"
    FOUND = "Files that were found"
    FILE = "A file"
    CANVAS = "Canvas"
    CANVAS_FILE = "A file of the canvas"
    LOCAL_PATH = "A path of this machine"
    HOOKS = "Runs of hooks"
    HOOK = "Output of a hook"
    INFO = "Info panel"
    CHANGES = "Changes"
    COMMENT = "Comment on changes"
    SUMMARY = "Message around comments"
    SEARCH = "Search in changes"
    EXEC = "Single command"
    EXEC_OUTPUT = "Output of commands"


TYPING = frozenset(
    {
        Where.ANYWHERE,
        Where.ASKED,
        Where.CHATS,
        Where.CHAT_FIND,
        Where.COMMENT,
        Where.COMPOSER,
        Where.DIALOG,
        Where.EXEC,
        Where.FIND,
        Where.FINDER,
        Where.FORM,
        Where.LOCAL_PATH,
        Where.NARROWING,
        Where.NEW_REPLICA,
        Where.PALETTE,
        Where.SEARCH,
        Where.SECRET,
        Where.SKILL_SEARCH,
        Where.SUMMARY,
        Where.TERMINAL,
        Where.TERMINAL_FIND,
        Where.TERMINAL_NAME,
        Where.WRITING,
    }
)
"""Where a letter is text, or may be: no action has one for its key there."""

AROUND: dict[Where, tuple[Where, ...]] = {
    Where.LIST: (Where.TABS, Where.ANYWHERE),
    Where.CHAT: (Where.READING, Where.CHATS, Where.ANYWHERE),
    Where.COMPOSER: (Where.WRITING, Where.CHATS, Where.ANYWHERE),
    Where.TERMINAL: (),
    Where.TERMINAL_COMMAND: (),
    Where.TERMINAL_READING: (),
    Where.TERMINAL_FIND: (),
    Where.TERMINAL_NAME: (),
    Where.TERMINAL_LINK: (),
    Where.HELP: (),
    Where.DIALOG: (),
    Where.FORM: (Where.DIALOG,),
    Where.NEW_REPLICA: (Where.DIALOG,),
    Where.CONFIRM: (Where.DIALOG,),
    Where.UNSAVED: (Where.DIALOG,),
    Where.PALETTE: (Where.DIALOG,),
    Where.ASKED: (Where.DIALOG,),
    Where.SHOWN_ONCE: (Where.DIALOG,),
    Where.SKILL_SEARCH: (Where.DIALOG,),
    Where.ENVIRONMENT_HOOK: (Where.DIALOG,),
}
"""The places whose keys work there too; without an entry those of `ANYWHERE` alone."""

OWN = "own."
"""Before a method: the widget that has the focus carries it out, and not its screen."""


@dataclass(frozen=True)
class Action:
    """`method` is the name after `action_`, empty for what the widget does itself.

    It belongs to the screen or the pane that binds the place; `screen.` before it names the screen,
    `own.` the widget itself. A widget that binds an action without a method gives its binding the
    action's id, or asks `pressed`; so every key can be another one.

    `brief` stands in the bottom line when not empty. `fixed` keys are text that is typed, or several
    keys in one line of the help: they cannot be others.
    """

    id: str
    keys: str
    method: str
    help: str
    brief: str = ""
    fixed: bool = False

    @property
    def default(self) -> tuple[str, ...]:
        """The keys when nobody asked for others."""
        return tuple(self.keys.split(",")) if self.keys else ()
