"""Actions of pages and forms."""

from quarterdeck.tui.actions.model import BACK, HELP, Action, KeyContext
from quarterdeck.tui.actions.tabs import ATTACH, DETACH

RUN = Action("automation.run", "r", "screen.run", "Start a run now (asks first)", "run")
SWITCH = Action("automation.switch", "o", "screen.switch", "Turn on / off", "on/off")
EDIT_AUTOMATION = Action("automation.edit", "e", "screen.edit", "Edit the automation", "edit")
REVEAL = Action("automation.reveal", "v", "screen.reveal", "Show / hide the webhook token")
ROTATE = Action(
    "automation.rotate", "R", "screen.rotate_webhook", "Rotate the webhook token (asks first)"
)
COPY = Action("automation.copy", "y", "screen.copy_webhook", "Copy the webhook's curl command")
NEXT_PART = Action("automation.next", "tab", "screen.next_part", "Next part")
PREVIOUS_PART = Action("automation.before", "shift+tab", "screen.part_before", "Previous part")
TO_AUTOMATIONS = Action(
    "automation.list", "escape,left", "screen.to_automations", "Back to list", "list"
)
TO_REPLICA = Action(
    "execution.replica", "w", "screen.to_replica", "Go to the replica of the run", "replica"
)
APPROVE = Action(
    "execution.approve", "a", "screen.approve", "Approve a run from a fork (asks first)", "approve"
)
CANCEL = Action("execution.cancel", "x", "screen.cancel_run", "Cancel a run (asks first)", "cancel")
RETRY = Action("execution.retry", "t", "screen.retry", "Retry a failed run", "retry")
OF_A_RUN = (APPROVE, CANCEL, RETRY)
"""Shown in the bottom line only where it has an effect: it depends on a run's state."""

AUTOMATION_PLACES: dict[KeyContext, tuple[Action, ...]] = {
    KeyContext.AUTOMATIONS: (
        Action("automation.new", "n", "screen.new", "Create an automation", "new"),
        Action("automation.open", "enter,right", "screen.to_runs", "Runs", "runs"),
        RUN,
        SWITCH,
        EDIT_AUTOMATION,
        Action(
            "automation.delete", "d", "screen.delete", "Delete with its runs (asks first)", "delete"
        ),
        REVEAL,
        COPY,
        ROTATE,
        NEXT_PART,
        PREVIOUS_PART,
        BACK,
        HELP,
    ),
    KeyContext.AUTOMATION_FACTS: (
        TO_AUTOMATIONS,
        EDIT_AUTOMATION,
        RUN,
        SWITCH,
        REVEAL,
        COPY,
        ROTATE,
        NEXT_PART,
        PREVIOUS_PART,
        HELP,
    ),
    KeyContext.AUTOMATION_RUNS: (
        Action("execution.open", "enter,right", "screen.open_run", "Details", "open"),
        TO_REPLICA,
        *OF_A_RUN,
        RUN,
        TO_AUTOMATIONS,
        NEXT_PART,
        PREVIOUS_PART,
        HELP,
    ),
    KeyContext.AUTOMATION_RUN: (
        Action("execution.enter", "enter,w", "screen.to_replica", "Go to the replica", "replica"),
        *OF_A_RUN,
        Action("execution.payload", "y", "screen.copy_payload", "Copy the payload", "copy payload"),
        Action("execution.prompt", "p", "screen.copy_prompt", "Copy the prompt", "copy prompt"),
        Action("execution.back", "escape,left", "screen.back", "Back to the runs", "back"),
        HELP,
    ),
}


OPEN = Action("environments.open", "enter,right,tab", "screen.to_section", "Open", "open")
TO_ENVIRONMENTS = Action(
    "environments.list", "escape,left,shift+tab", "screen.to_list", "Go to environments", "list"
)
AGAIN = Action("environments.read", "ctrl+l", "screen.read_again", "Refresh")
SHOW = Action("section.show", "s", "reveal", "Show / hide masked values", "show")
ADD = Action("section.add", "a", "add", "Add", "add")
EDIT_PART = Action("section.edit", "enter,e", "edit", "View or edit", "edit")
DELETE = Action("section.delete", "d", "delete", "Delete (asks first)", "delete")

SECTIONS = tuple(
    Action(f"environments.{name}", str(number), f"screen.section('{name}')", help)
    for number, (name, help) in enumerate(
        {
            "general": "General: name, repositories, prompts",
            "variables": "Variables",
            "files": "Files",
            "skills": "Skills",
            "mcps": "MCP servers",
            "hooks": "Hooks",
            "pool": "Warm pool",
        }.items(),
        start=1,
    )
)
REST = (*SECTIONS, AGAIN, HELP)

ENVIRONMENT_PLACES: dict[KeyContext, tuple[Action, ...]] = {
    KeyContext.ENVIRONMENTS: (
        OPEN,
        Action("environments.new", "n", "screen.new", "New environment", "new"),
        Action("environments.edit", "r,e", "screen.rename", "Edit", "edit"),
        Action(
            "environments.delete",
            "d",
            "screen.delete",
            "Delete with its contents (asks first)",
            "delete",
        ),
        BACK,
        *SECTIONS,
        AGAIN,
        HELP,
    ),
    KeyContext.ENVIRONMENT_GENERAL: (
        EDIT_PART,
        Action("general.prompt", "p", "prompt", "Edit the system prompt", "prompt"),
        TO_ENVIRONMENTS,
        *REST,
    ),
    KeyContext.ENVIRONMENT_VARIABLES: (
        ADD,
        EDIT_PART,
        DELETE,
        SHOW,
        Action("variables.paste", "v", "paste", "Paste .env contents", "paste .env"),
        TO_ENVIRONMENTS,
        *REST,
    ),
    KeyContext.ENVIRONMENT_FILES: (
        ADD,
        EDIT_PART,
        Action("environment-files.outside", "o", "outside", "Edit content in $EDITOR", "$EDITOR"),
        DELETE,
        TO_ENVIRONMENTS,
        *REST,
    ),
    KeyContext.ENVIRONMENT_SKILLS: (
        ADD._replace(help="Search the registries and install", brief="search"),
        Action("skills.by_hand", "m", "by_hand", "Install from URL", "from URL"),
        DELETE._replace(brief="remove"),
        TO_ENVIRONMENTS,
        *REST,
    ),
    KeyContext.ENVIRONMENT_MCPS: (ADD, EDIT_PART, DELETE, SHOW, TO_ENVIRONMENTS, *REST),
    KeyContext.ENVIRONMENT_HOOKS: (
        EDIT_PART._replace(help="Edit and test", brief="edit and test"),
        TO_ENVIRONMENTS,
        *REST,
    ),
    KeyContext.ENVIRONMENT_POOL: (
        Action("pool.switch", "enter,o", "switch", "Turn the pool on / off", "on/off"),
        Action("pool.retry", "r", "retry", "Retry now", "retry"),
        TO_ENVIRONMENTS,
        *REST,
    ),
    KeyContext.ENVIRONMENT_HOOK: (
        Action("environment-hook.save", "ctrl+s", "save", "Save and activate", "save"),
        Action("hook.test", "ctrl+t", "test", "Test in a temporary replica / stop", "test"),
        Action(
            "environment-hook.editor", "ctrl+o", "editor", "Edit the script in $EDITOR", "$EDITOR"
        ),
        Action(
            "environment-hook.log",
            "tab,shift+tab",
            "other",
            "Script / output",
            "log",
        ),
        Action(
            "environment-hook.close",
            "escape",
            "close",
            "Close (asks if unsaved)",
            "close",
        ),
    ),
    KeyContext.SKILL_SEARCH: (
        Action("skills.install", "enter", "install", "Install the skill", "install"),
        Action("skills.down", "down", "down", "Go to results"),
        Action("skills.close", "escape", "close", "Close", "close"),
    ),
}


SETTINGS_PARTS = ("General", "Agents and credentials", "Connections", "Notifications", "Keys")
"""Parts of the settings page, in the order of their keys."""

SETTINGS_PLACES: dict[KeyContext, tuple[Action, ...]] = {
    KeyContext.SETTINGS: (
        Action("settings.change", "enter,space", "screen.change", "Change or run", "change"),
        Action(
            "settings.add",
            "n",
            "screen.add",
            "Add a service, a provider's key, or an API key",
            "add",
        ),
        Action("settings.remove", "d", "screen.remove", "Remove (asks first)", "remove"),
        Action(
            "settings.show",
            "s",
            "screen.show_beside",
            "Show a service beside the one in use, or no longer",
        ),
        Action("settings.test", "t", "screen.test", "Send a test notification"),
        Action("settings.read", "r", "screen.read", "Refresh", "refresh"),
        Action("settings.find", "slash", "screen.find", "Find in all settings", "find"),
        Action("settings.next", "tab,right", "screen.next_part(1)", "Next part", "next part"),
        Action("settings.before", "shift+tab,left", "screen.next_part(-1)", "Previous part"),
        *(
            Action(f"settings.part-{number}", str(number), f"screen.part({number})", part)
            for number, part in enumerate(SETTINGS_PARTS, 1)
        ),
        Action("settings.up", "up,k", "own.move(-1)", "Up"),
        Action("settings.down", "down,j", "own.move(1)", "Down"),
        Action("settings.page-up", "pageup", "own.move(-10)", "Page up"),
        Action("settings.page-down", "pagedown", "own.move(10)", "Page down"),
        Action("settings.first", "home,g", "own.edge(0)", "First line"),
        Action("settings.last", "end,G", "own.edge(-1)", "Last line"),
        BACK,
        HELP,
    ),
    KeyContext.ASKED: (
        Action("asked.done", "enter", "submit", "Save", "save"),
        Action("asked.cancel", "escape", "cancel", "Leave unchanged", "cancel"),
    ),
    KeyContext.SHOWN_ONCE: (
        Action("shown.copy", "y,enter", "copy", "Copy", "copy"),
        Action("shown.close", "escape,q", "close", "I have saved it: close", "close"),
    ),
}


SAVE = Action("form.save", "ctrl+s", "save", "Save", "save")
NEXT_FIELD = Action("form.next", "tab", "app.focus_next", "Next field", "next field")
PREVIOUS_FIELD = Action("form.before", "shift+tab", "app.focus_previous", "Previous field")
CLOSE = Action("form.close", "escape", "close", "Close (asks if unsaved)", "close")

FORM_PLACES: dict[KeyContext, tuple[Action, ...]] = {
    KeyContext.FORM: (
        SAVE,
        NEXT_FIELD,
        PREVIOUS_FIELD,
        Action("form.reveal", "ctrl+t", "reveal", "Show / hide masked values", "show/hide"),
        Action("form.editor", "ctrl+o", "editor", "Edit the text in $EDITOR", "editor"),
        CLOSE,
    ),
    KeyContext.NEW_REPLICA: (
        SAVE._replace(help="Create the replica"),
        NEXT_FIELD,
        PREVIOUS_FIELD,
        ATTACH._replace(help="Attach an image to the first message"),
        DETACH._replace(help="Remove images"),
        CLOSE._replace(help="Close (draft is kept)"),
    ),
    KeyContext.CONFIRM: (
        Action("confirm.yes", "y", "answer('yes')", "Yes"),
        Action("confirm.no", "n,escape", "answer('no')", "No"),
    ),
    KeyContext.UNSAVED: (
        Action("unsaved.save", "s", "answer('save')", "Save the changes"),
        Action("unsaved.drop", "d", "answer('drop')", "Discard changes"),
        Action("unsaved.stay", "escape", "answer('stay')", "Back to the form"),
    ),
}
