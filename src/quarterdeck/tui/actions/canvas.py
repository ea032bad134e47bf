"""Keys of the canvas of a replica."""

from quarterdeck.tui.actions.anywhere import HELP, TO_LIST, WAKE
from quarterdeck.tui.actions.model import Action, Where
from quarterdeck.tui.actions.reading import FINDING

_SAVE = Action("canvas.save", "s", "deed('save')", "Save it to a file of this machine", "save")
_UPLOAD = Action(
    "canvas.upload", "u", "deed('upload')", "Put a file of this machine there", "upload"
)
_MENTION = Action("canvas.mention", "m", "deed('mention')", "Mention it in the message", "mention")
_AGAIN = Action("canvas.again", "r", "deed('again')", "Read anew what is there now")

PLACES: dict[Where, tuple[Action, ...]] = {
    Where.CANVAS: (
        Action("canvas.open", "enter", "deed('open')", "Open the file", "open"),
        _SAVE,
        _UPLOAD,
        _MENTION,
        WAKE,
        _AGAIN,
        TO_LIST,
        HELP,
    ),
    Where.CANVAS_FILE: (
        *FINDING,
        Action("canvas.source", "v", "deed('source')", "As text, or rendered", "text"),
        _SAVE,
        _MENTION,
        Action("canvas.items", "escape,tab", "deed('items')", "To all files", "files"),
        _UPLOAD,
        _AGAIN,
        WAKE,
        HELP,
    ),
    Where.LOCAL_PATH: (
        Action("path.done", "enter", "done", "Do it", "do it"),
        Action("path.complete", "tab", "complete", "Complete the path", "complete"),
        Action("path.cancel", "escape", "cancel", "Do nothing", "cancel"),
    ),
}
