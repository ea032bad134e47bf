"""Keys of the info panel."""

from quarterdeck.tui.actions.anywhere import HELP, TO_LIST
from quarterdeck.tui.actions.model import Action, Where

PLACES: dict[Where, tuple[Action, ...]] = {
    Where.INFO: (
        Action("info.copy", "enter,y", "copy_link", "Copy the address under the cursor", "copy"),
        Action("info.back", "tab", "screen.from_info", "Back to the replica", "replica"),
        Action("info.hide", "f2", "screen.toggle_info", "Hide the panel", "hide"),
        TO_LIST,
        HELP,
    ),
}
