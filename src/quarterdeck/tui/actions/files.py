"""Keys of the files of a replica: the finder, what it found, and a file."""

from dataclasses import replace

from quarterdeck.tui.actions.anywhere import HELP, TO_LIST, WAKE
from quarterdeck.tui.actions.model import Action, Where
from quarterdeck.tui.actions.reading import FINDING

_EDITOR = Action("file.edit", "e", "deed('edit')", "Read a copy in $EDITOR", "editor")
_PAGER = Action("file.page", "p", "deed('page')", "Read a copy in $PAGER", "pager")
_MENTION = Action("file.mention", "m", "deed('mention')", "Mention it in the message", "mention")
_COPY_PATH = Action("file.copy-path", "Y", "deed('copy-path')", "Copy the path")
_AGAIN = Action("file.again", "r", "deed('again')", "Read anew what is there now")
_TO_FINDER = Action("file.finder", "tab,escape", "deed('finder')", "To the finder", "finder")

PLACES: dict[Where, tuple[Action, ...]] = {
    Where.FINDER: (
        Action("finder.open", "enter", "deed('open')", "Open the file under the cursor", "open"),
        Action("finder.down", "down", "deed('down')", "To the next file"),
        Action("finder.up", "up", "deed('up')", "To the file before"),
        Action("finder.page-down", "pagedown", "deed('page-down')", "A page of files down"),
        Action("finder.page-up", "pageup", "deed('page-up')", "A page of files up"),
        Action("finder.found", "tab", "deed('found')", "To what was found, for its keys", "found"),
        Action("finder.list", "escape", "screen.to_list", "To the list of replicas", "list"),
    ),
    Where.FOUND: (
        Action("found.open", "enter", "deed('open')", "Open the file", "open"),
        _MENTION,
        replace(_COPY_PATH, id="found.copy-path", keys="y", brief="copy path"),
        Action("found.finder", "slash,tab", "deed('finder')", "To the finder", "find"),
        _EDITOR,
        _PAGER,
        _AGAIN,
        WAKE,
        TO_LIST,
        HELP,
    ),
    Where.FILE: (
        *FINDING,
        _MENTION,
        _TO_FINDER,
        _EDITOR,
        _PAGER,
        _COPY_PATH,
        _AGAIN,
        WAKE,
        HELP,
    ),
}
