"""Keys of forms, wherever they are."""

from dataclasses import replace

from quarterdeck.tui.actions.chat import ATTACH, DETACH
from quarterdeck.tui.actions.model import Action, Where

SAVE = Action("form.save", "ctrl+s", "save", "Save what stands in the form", "save")
NEXT = Action("form.next", "tab", "app.focus_next", "To the next field", "next field")
BEFORE = Action("form.before", "shift+tab", "app.focus_previous", "To the field before")
CLOSE = Action("form.close", "escape", "close", "Close; asks when something is unsaved", "close")

PLACES: dict[Where, tuple[Action, ...]] = {
    Where.FORM: (
        SAVE,
        NEXT,
        BEFORE,
        Action("form.reveal", "ctrl+t", "reveal", "Show what is masked, or hide it", "show hidden"),
        Action("form.editor", "ctrl+o", "editor", "Edit the text in $EDITOR", "editor"),
        CLOSE,
    ),
    Where.NEW_REPLICA: (
        replace(SAVE, help="Create the replica"),
        NEXT,
        BEFORE,
        replace(ATTACH, help="Attach an image to the first message"),
        replace(DETACH, help="Take attached images off again"),
        replace(CLOSE, help="Close; what was typed is kept for the next time"),
    ),
    Where.CONFIRM: (
        Action("confirm.yes", "y", "answer(True)", "Yes, do it"),
        Action("confirm.no", "n,escape", "answer(False)", "No, leave it"),
    ),
    Where.UNSAVED: (
        Action("unsaved.save", "s", "answer('save')", "Save the changes"),
        Action("unsaved.drop", "d", "answer('drop')", "Drop the changes"),
        Action("unsaved.stay", "escape", "answer('stay')", "Go on with the form"),
    ),
}
