"""Keys of terminals."""

from quarterdeck.tui.actions.anywhere import CHAT, HELP, TO_LIST, WAKE
from quarterdeck.tui.actions.model import Action, Where

PREFIX = Action(
    "terminal.prefix",
    "ctrl+g",
    "",
    "The one key that the terminal does not get; twice types it",
    "commands: list, chat, new, find, copy …",
)
READ = Action("terminal.read", "left_square_bracket", "", "Read and copy by keys", "read")
FIND = Action("terminal.find", "slash", "", "Search the screen and what scrolled away", "find")


PLACES: dict[Where, tuple[Action, ...]] = {
    Where.TERMINAL: (
        PREFIX,
        Action("terminal.scroll", "shift+pageup", "", "Scroll back", "back"),
        Action("terminal.scroll-forward", "shift+pagedown", "", "Scroll forward"),
    ),
    Where.TERMINAL_COMMAND: (
        Action("terminal.list", "l,escape,left", "", "To the list", "list"),
        Action("terminal.chat", "m", "", "To the chat", "chat"),
        Action("terminal.new", "c", "", "Another terminal", "new"),
        Action("terminal.next", "n", "", "The next terminal", "next"),
        Action("terminal.close", "x", "", "Close the terminal", "close"),
        FIND,
        READ,
        Action("terminal.link", "u", "", "The newest link: open or copy it", "link"),
        Action("terminal.rename", "comma", "", "Name the terminal", "name"),
        Action("terminal.previous", "p", "", "The terminal before"),
        Action("terminal.allow", "y", "", "Let the program copy what it asked to"),
        Action("terminal.palette", "ctrl+p", "", "Find an action, a replica or a page"),
        Action("terminal.1", "1", "", "The first terminal", "to 8"),
        *(Action(f"terminal.{n}", str(n), "", f"Terminal {n}") for n in range(2, 9)),
    ),
    Where.TERMINAL_READING: (
        Action("reading.leave", "q,escape", "", "Back to the program", "leave"),
        Action("reading.mark", "v,space", "", "Mark from here; again: mark nothing", "mark"),
        Action("reading.copy", "y,enter", "", "Copy what is marked, and leave", "copy"),
        Action("reading.find", "slash", "", FIND.help, "find"),
        Action("reading.older", "n", "", "The match before, which is older", "older"),
        Action("reading.newer", "N", "", "The match after", "newer"),
        Action("reading.link", "u", "", "To the link before", "link"),
        Action("reading.next-link", "U", "", "To the link after"),
        Action("reading.open", "o", "", "Open or copy the link here (asks)"),
        Action("reading.mark-word", "W", "", "Mark whole words"),
        Action("reading.mark-lines", "V", "", "Mark whole lines"),
        Action("reading.swap", "s", "", "To the other end of what is marked"),
        Action("reading.left", "h,left", "", "A character back"),
        Action("reading.right", "l,right", "", "A character on"),
        Action("reading.up", "k,up", "", "A line up"),
        Action("reading.down", "j,down", "", "A line down"),
        Action("reading.next-word", "w,ctrl+right", "", "The next word"),
        Action("reading.previous-word", "b,ctrl+left", "", "The word before"),
        Action("reading.word-end", "e", "", "The end of the word"),
        Action("reading.line-start", "0,home", "", "The beginning of the line"),
        Action("reading.line-text", "circumflex_accent", "", "The first text of the line"),
        Action("reading.line-end", "dollar_sign,end", "", "The end of the line"),
        Action("reading.page-up", "pageup,ctrl+b,shift+pageup", "", "A page up"),
        Action("reading.page-down", "pagedown,ctrl+f,shift+pagedown", "", "A page down"),
        Action("reading.half-up", "ctrl+u", "", "Half a page up"),
        Action("reading.half-down", "ctrl+d", "", "Half a page down"),
        Action("reading.oldest", "g,ctrl+home", "", "The oldest line"),
        Action("reading.newest", "G,ctrl+end", "", "The newest line"),
        Action("reading.view-top", "H", "", "The first line in view"),
        Action("reading.view-middle", "M", "", "The middle of the view"),
        Action("reading.view-bottom", "L", "", "The last line in view"),
    ),
    Where.TERMINAL_FIND: (
        Action("finding.done", "enter", "", "Keep the search; n and N go on", "go there"),
        Action("finding.older", "up", "", "The match before, which is older", "older"),
        Action("finding.newer", "down", "", "The match after", "newer"),
        Action("finding.leave", "escape", "", "Back to the program", "leave"),
    ),
    Where.TERMINAL_NAME: (
        Action("naming.done", "enter", "", "Take the name; none: the program's title", "name it"),
        Action("naming.leave", "escape", "", "Leave it as it was", "leave"),
    ),
    Where.TERMINAL_LINK: (
        Action("link.open", "o,enter", "", "Open the address in the browser", "open"),
        Action("link.copy", "c,y", "", "Copy the address", "copy"),
        Action("link.leave", "escape,q", "", "Neither", "leave"),
    ),
    Where.NO_TERMINAL: (
        Action("terminal.again", "enter", "", "Open a new terminal", "open"),
        Action("terminal.dismiss", "x", "", "Close what has ended", "close"),
        Action("ended.find", "slash", "", FIND.help, "find"),
        Action("ended.read", "left_square_bracket", "", READ.help, "read"),
        CHAT,
        WAKE,
        TO_LIST,
        HELP,
    ),
}
