"""Keys of forms, wherever they are."""

from quarterdeck.tui.actions.model import Action, Where

PLACES: dict[Where, tuple[Action, ...]] = {
    Where.FORM: (
        Action("form.save", "ctrl+s", "save", "Save what stands in the form", "save"),
        Action("form.next", "tab", "app.focus_next", "To the next field", "next field"),
        Action("form.before", "shift+tab", "app.focus_previous", "To the field before"),
        Action("form.reveal", "ctrl+t", "reveal", "Show what is masked, or hide it", "show hidden"),
        Action("form.editor", "ctrl+o", "editor", "Edit the text in $EDITOR", "editor"),
        Action("form.close", "escape", "close", "Close; asks when something is unsaved", "close"),
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
