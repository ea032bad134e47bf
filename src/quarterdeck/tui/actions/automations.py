"""Keys of the automations, their runs, and one run."""

from quarterdeck.tui.actions.anywhere import BACK, HELP
from quarterdeck.tui.actions.model import Action, Where

RUN = Action("automation.run", "r", "screen.run", "Begin a run now (asks)", "run")
SWITCH = Action("automation.switch", "o", "screen.switch", "Switch on or off", "on/off")
EDIT = Action("automation.edit", "e", "screen.edit", "Edit the automation", "edit")
REVEAL = Action("automation.reveal", "v", "screen.reveal", "Show or hide the webhook's token")
COPY = Action("automation.copy", "y", "screen.copy_webhook", "Copy how the webhook is called")
NEXT = Action("automation.next", "tab", "screen.next_part", "To the next part")
BEFORE = Action("automation.before", "shift+tab", "screen.part_before", "To the part before")
TO_AUTOMATIONS = Action(
    "automation.list", "escape,left", "screen.to_automations", "To the list", "list"
)
TO_REPLICA = Action(
    "execution.replica", "w", "screen.to_replica", "Go to the replica of the run", "replica"
)
RETRY = Action("execution.retry", "t", "screen.retry", "Run a failed run again", "retry")

PLACES: dict[Where, tuple[Action, ...]] = {
    Where.AUTOMATIONS: (
        Action("automation.new", "n", "screen.new", "Create an automation", "new"),
        Action("automation.open", "enter,right", "screen.to_runs", "To its runs", "runs"),
        RUN,
        SWITCH,
        EDIT,
        Action("automation.delete", "d", "screen.delete", "Delete with its runs (asks)", "delete"),
        REVEAL,
        COPY,
        NEXT,
        BEFORE,
        BACK,
        HELP,
    ),
    Where.AUTOMATION_FACTS: (TO_AUTOMATIONS, EDIT, RUN, SWITCH, REVEAL, COPY, NEXT, BEFORE, HELP),
    Where.AUTOMATION_RUNS: (
        Action(
            "execution.open", "enter,right", "screen.open_run", "Payload, prompt, error", "open"
        ),
        TO_REPLICA,
        RETRY,
        RUN,
        TO_AUTOMATIONS,
        NEXT,
        BEFORE,
        HELP,
    ),
    Where.AUTOMATION_RUN: (
        Action(
            "execution.enter", "enter,w", "screen.to_replica", "Go to the replica", "to the replica"
        ),
        RETRY,
        Action("execution.payload", "y", "screen.copy_payload", "Copy the payload", "copy payload"),
        Action("execution.prompt", "p", "screen.copy_prompt", "Copy the prompt", "copy prompt"),
        Action("execution.back", "escape,left", "screen.back", "Back to the runs", "back"),
        HELP,
    ),
}
