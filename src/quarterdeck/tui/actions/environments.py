"""Keys of the environments, of their parts, and of the dialogs for them."""

from dataclasses import replace

from quarterdeck.tui.actions.anywhere import BACK, HELP
from quarterdeck.tui.actions.model import Action, Where

OPEN = Action(
    "environments.open", "enter,right,tab", "screen.to_section", "Into what it carries", "open"
)
TO_LIST = Action(
    "environments.list", "escape,left,shift+tab", "screen.to_list", "To the environments", "list"
)
AGAIN = Action("environments.read", "ctrl+l", "screen.read_again", "Read everything again")
SHOW = Action("section.show", "s", "reveal", "Show what is masked, or hide it", "show")
ADD = Action("section.add", "a", "add", "Add one", "add")
EDIT = Action("section.edit", "enter,e", "edit", "Look at it, or change it", "edit")
DELETE = Action("section.delete", "d", "delete", "Take it away (asks)", "delete")

SECTIONS = tuple(
    Action(f"environments.{name}", str(number), f"screen.section('{name}')", help)
    for number, (name, help) in enumerate(
        {
            "general": "What it is: name, repositories, prompts",
            "variables": "Its variables",
            "files": "Its files",
            "skills": "Its skills",
            "mcps": "Its MCP servers",
            "hooks": "Its hooks",
            "pool": "Its warm pool",
        }.items(),
        start=1,
    )
)
REST = (*SECTIONS, AGAIN, HELP)

PLACES: dict[Where, tuple[Action, ...]] = {
    Where.ENVIRONMENTS: (
        OPEN,
        Action("environments.new", "n", "screen.new", "Make an environment", "new"),
        Action(
            "environments.edit", "r,e", "screen.rename", "Rename it, or change what it is", "rename"
        ),
        Action(
            "environments.delete",
            "d",
            "screen.delete",
            "Delete with all it carries (asks)",
            "delete",
        ),
        BACK,
        *SECTIONS,
        AGAIN,
        HELP,
    ),
    Where.ENVIRONMENT_GENERAL: (
        EDIT,
        Action("general.prompt", "p", "prompt", "Edit the system prompt", "prompt"),
        TO_LIST,
        *REST,
    ),
    Where.ENVIRONMENT_VARIABLES: (
        ADD,
        EDIT,
        DELETE,
        SHOW,
        Action("variables.paste", "v", "paste", "Paste the text of a .env file", "paste .env"),
        TO_LIST,
        *REST,
    ),
    Where.ENVIRONMENT_FILES: (
        ADD,
        EDIT,
        Action(
            "environment-files.outside", "o", "outside", "Edit its content in $EDITOR", "$EDITOR"
        ),
        DELETE,
        TO_LIST,
        *REST,
    ),
    Where.ENVIRONMENT_SKILLS: (
        replace(ADD, help="Search the registries and install", brief="search"),
        Action("skills.by_hand", "m", "by_hand", "Install from a source by hand", "by hand"),
        replace(DELETE, brief="remove"),
        TO_LIST,
        *REST,
    ),
    Where.ENVIRONMENT_MCPS: (ADD, EDIT, DELETE, SHOW, TO_LIST, *REST),
    Where.ENVIRONMENT_HOOKS: (
        replace(EDIT, help="Edit it, and try it out", brief="edit and test"),
        TO_LIST,
        *REST,
    ),
    Where.ENVIRONMENT_POOL: (
        Action("pool.switch", "enter,o", "switch", "Switch the pool on or off", "on or off"),
        Action("pool.retry", "r", "retry", "Let it try again at once", "try again"),
        TO_LIST,
        *REST,
    ),
    Where.ENVIRONMENT_HOOK: (
        Action("environment-hook.save", "ctrl+s", "save", "Save, and put it in force", "save"),
        Action(
            "hook.test", "ctrl+t", "test", "Run it in a workspace of its own, or stop that", "test"
        ),
        Action(
            "environment-hook.editor", "ctrl+o", "editor", "Edit the script in $EDITOR", "$EDITOR"
        ),
        Action(
            "environment-hook.log",
            "tab,shift+tab",
            "other",
            "To what it printed, or to the script",
            "log",
        ),
        Action(
            "environment-hook.close",
            "escape",
            "close",
            "Close; asks when something is unsaved",
            "close",
        ),
    ),
    Where.SKILL_SEARCH: (
        Action("skills.install", "enter", "install", "Install the skill", "install"),
        Action("skills.down", "down", "down", "To the skills that were found"),
        Action("skills.close", "escape", "close", "Close", "close"),
    ),
}
