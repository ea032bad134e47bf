"""Keys of every screen, and those that many places share."""

from quarterdeck.tui.actions.model import Action, KeyContext

HELP = Action("app.help", "question_mark", "screen.help", "Help for this pane", "keys")
TO_LIST = Action("app.list", "escape,left", "screen.to_list", "Back to list", "list")
BACK = Action("page.back", "escape", "screen.back", "Back to the replicas", "back")
WAKE = Action("replica.wake", "w", "screen.wake", "Wake / retry", "wake")
INTERRUPT = Action("chat.interrupt", "i", "screen.interrupt", "Interrupt", "interrupt")
TERMINAL = Action(
    "replica.terminal", "t", "screen.show('terminal')", "Open the terminal", "terminal"
)
ALL_KEYS = Action("help.all", "question_mark", "every_place", "All keys / this pane")
KEYS = Action("app.keys", "f1", "help", "Help for this pane")
EXIT = Action("app.exit", "ctrl+q", "leave", "Quit (agents keep running)")
CHAT = Action("tab.chat", "1", "screen.show('chat')", "Chat", "chat")

PLACES: dict[KeyContext, tuple[Action, ...]] = {
    KeyContext.PAGE: (BACK, HELP),
    KeyContext.HELP: (ALL_KEYS, Action("help.close", "escape,q,f1", "close", "Close the help")),
    KeyContext.PALETTE: (
        Action("palette.run", "enter", "run", "Run", "do"),
        Action("palette.up", "up,ctrl+p", "move(-1)", "Up"),
        Action("palette.down", "down,ctrl+n", "move(1)", "Down"),
        Action("palette.page-up", "pageup", "move(-10)", "Page up"),
        Action("palette.page-down", "pagedown", "move(10)", "Page down"),
        Action("palette.close", "escape", "close", "Close the palette", "close"),
    ),
    KeyContext.ANYWHERE: (
        Action("app.palette", "ctrl+p", "app.palette", "Search commands and replicas"),
        Action("app.reconnect", "ctrl+r", "reconnect", "Reconnect now"),
        Action("app.suspend", "ctrl+z", "app.suspend_process", "Suspend (fg to return)"),
        KEYS,
        EXIT,
    ),
    KeyContext.DIALOG: (KEYS, EXIT),
}
