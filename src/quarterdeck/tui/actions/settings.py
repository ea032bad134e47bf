"""Keys of the settings page, and of what it asks and shows."""

from quarterdeck.tui.actions.anywhere import BACK, HELP
from quarterdeck.tui.actions.model import Action, Where

PLACES: dict[Where, tuple[Action, ...]] = {
    Where.SETTINGS: (
        Action("settings.change", "enter,space", "screen.change", "Change it, or do it", "change"),
        Action(
            "settings.add",
            "n",
            "screen.add",
            "Add a service, a provider's key, or an API key",
            "add",
        ),
        Action("settings.remove", "d", "screen.remove", "Remove it (asks)", "remove"),
        Action("settings.test", "t", "screen.test", "Send a notification to try the target"),
        Action("settings.read", "r", "screen.read", "Read everything again", "read again"),
        Action("settings.next", "tab", "own.section(1)", "To the next part", "next part"),
        Action("settings.before", "shift+tab", "own.section(-1)", "To the part before"),
        Action("settings.up", "up,k", "own.move(-1)", "The line above"),
        Action("settings.down", "down,j", "own.move(1)", "The line below"),
        Action("settings.page-up", "pageup", "own.move(-10)", "Ten lines up"),
        Action("settings.page-down", "pagedown", "own.move(10)", "Ten lines down"),
        Action("settings.first", "home,g", "own.edge(0)", "The first line"),
        Action("settings.last", "end,G", "own.edge(-1)", "The last line"),
        BACK,
        HELP,
    ),
    Where.ASKED: (
        Action("asked.done", "enter", "submit", "Take what was typed", "take"),
        Action("asked.cancel", "escape", "cancel", "Leave it as it was", "cancel"),
    ),
    Where.SHOWN_ONCE: (
        Action("shown.copy", "y,enter", "copy", "Copy it", "copy"),
        Action("shown.close", "escape,q", "close", "It is kept: close", "close"),
    ),
}
