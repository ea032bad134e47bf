"""Keys of the hooks of a replica."""

from quarterdeck.tui.actions.anywhere import HELP, TO_LIST, WAKE
from quarterdeck.tui.actions.model import Action, Where
from quarterdeck.tui.actions.reading import FINDING

_SCRIPT = Action("hook.script", "v", "deed('script')", "The script, or its output", "script")
_AGAIN = Action("hook.again", "r", "deed('again')", "Read the logs anew")

PLACES: dict[Where, tuple[Action, ...]] = {
    Where.HOOKS: (
        Action("hook.output", "enter,tab", "deed('output')", "To the output", "output"),
        _SCRIPT,
        WAKE,
        _AGAIN,
        TO_LIST,
        HELP,
    ),
    Where.HOOK: (
        *FINDING,
        _SCRIPT,
        WAKE,
        Action("hook.runs", "escape,tab", "deed('runs')", "To the runs", "runs"),
        _AGAIN,
        HELP,
    ),
}
