"""Keys of texts that are read, wherever they are shown."""

from quarterdeck.tui.actions.model import Action, Where

FIND = Action("text.find", "slash", "find", "Find in the text", "find")
COPY = Action("text.copy", "y", "copy", "Copy the line, or what is selected", "copy")

FINDING = (
    FIND,
    Action("text.find-next", "n", "find_next(1)", "To the next place of what was found"),
    Action("text.find-previous", "N", "find_next(-1)", "To the place before"),
    COPY,
)
"""What every reader has."""

PLACES: dict[Where, tuple[Action, ...]] = {
    Where.FIND: (
        Action("find.keep", "enter", "leave(True)", "Back to the text, places marked", "keep"),
        Action("find.next", "down", "step(1)", "To the next place", "next"),
        Action("find.previous", "up", "step(-1)", "To the place before", "previous"),
        Action("find.drop", "escape", "leave(False)", "Back to the text as it was", "back"),
    ),
}
