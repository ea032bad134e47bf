"""Keys of every screen, and those that many places share."""

from quarterdeck.tui.actions.model import Action, Where

HELP = Action("app.help", "question_mark", "screen.help", "Keys of what has the focus", "keys")
TO_LIST = Action("app.list", "escape,left", "screen.to_list", "To the list", "list")
BACK = Action("page.back", "escape", "screen.back", "Back to the replicas", "back")
WAKE = Action("replica.wake", "w", "screen.wake", "Wake, or try again what failed", "wake")
INTERRUPT = Action("chat.interrupt", "i", "screen.interrupt", "Stop the running turn", "interrupt")
TERMINAL = Action(
    "replica.terminal", "t", "screen.show('terminal')", "Open the terminal", "terminal"
)
ALL_KEYS = Action("help.all", "question_mark", "every_place", "Keys of all places, or of here")
KEYS = Action("app.keys", "f1", "help", "Keys of what has the focus")
EXIT = Action("app.exit", "ctrl+q", "leave", "Close the cockpit; everything goes on")
CHAT = Action("tab.chat", "1", "screen.show('chat')", "The chat", "chat")

PLACES: dict[Where, tuple[Action, ...]] = {
    Where.PAGE: (BACK, HELP),
    Where.HELP: (ALL_KEYS, Action("help.close", "escape,q,f1", "close", "Close the help")),
    Where.PALETTE: (
        Action("palette.run", "enter", "run", "Do it, or go there", "do"),
        Action("palette.up", "up,ctrl+p", "move(-1)", "The line above"),
        Action("palette.down", "down,ctrl+n", "move(1)", "The line below"),
        Action("palette.page-up", "pageup", "move(-10)", "Ten lines up"),
        Action("palette.page-down", "pagedown", "move(10)", "Ten lines down"),
        Action("palette.close", "escape", "close", "Close the palette", "close"),
    ),
    Where.ANYWHERE: (
        Action("app.palette", "ctrl+p", "app.palette", "Find an action, a replica or a page"),
        Action("app.reconnect", "ctrl+r", "reconnect", "Reconnect now"),
        Action(
            "app.suspend", "ctrl+z", "app.suspend_process", "Leave for the shell; fg comes back"
        ),
        KEYS,
        EXIT,
    ),
    Where.DIALOG: (KEYS, EXIT),
}
