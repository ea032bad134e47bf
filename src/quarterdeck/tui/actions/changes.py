"""Keys of the changes of a replica."""

from quarterdeck.tui.actions.anywhere import CHAT, HELP, WAKE
from quarterdeck.tui.actions.model import Action, Where

PLACES: dict[Where, tuple[Action, ...]] = {
    Where.CHANGES: (
        Action(
            "changes.act",
            "enter",
            "act",
            "Comment on the line; fold or open a file or a change",
            "comment",
        ),
        Action("changes.hunk", "right_square_bracket", "hunk(1)", "To the next change", "next"),
        Action("changes.hunk-back", "left_square_bracket", "hunk(-1)", "To the change before"),
        Action("changes.file", "right_curly_bracket,tab", "file(1)", "To the next file"),
        Action(
            "changes.file-back", "left_curly_bracket,shift+tab", "file(-1)", "To the file before"
        ),
        Action("changes.mark", "v", "mark", "Choose several lines, up to the cursor", "lines"),
        Action("changes.comment", "c", "comment", "Comment on the line, or on the chosen lines"),
        Action("changes.send", "S", "send", "Send all comments as one message", "send comments"),
        Action("changes.drop", "d,delete", "drop", "Drop the comment under the cursor"),
        Action("changes.comments", "greater_than_sign", "next_comment(1)", "To the next comment"),
        Action(
            "changes.comments-back", "less_than_sign", "next_comment(-1)", "To the comment before"
        ),
        Action("changes.split", "u", "split", "Old and new side by side, or below", "view"),
        Action("changes.fold", "space,z", "fold", "Fold or open the file"),
        Action("changes.fold-all", "Z", "fold_all", "Fold or open all files", "fold all"),
        Action("changes.search", "slash", "search", "Search in lines and paths", "search"),
        Action("changes.match", "n", "match(1)", "To the next place that was searched for"),
        Action("changes.match-back", "N", "match(-1)", "To the place before"),
        Action("changes.copy", "y", "copy(False)", "Copy the line, chosen lines or the comment"),
        Action("changes.copy-file", "Y", "copy(True)", "Copy the difference of the file"),
        Action("changes.page", "p", "outside('pager')", "Read the file's difference in $PAGER"),
        Action("changes.edit", "e", "outside('editor')", "Read it in $EDITOR, as a copy"),
        Action("changes.read", "r", "read", "Read the changes again"),
        WAKE,
        Action("changes.down", "down,j", "move(1)", "Down"),
        Action("changes.up", "up,k", "move(-1)", "Up"),
        Action("changes.page-down", "pagedown,ctrl+f", "page(1)", "Page down"),
        Action("changes.page-up", "pageup,ctrl+b", "page(-1)", "Page up"),
        Action("changes.top", "home,g", "edge(False)", "To the beginning"),
        Action("changes.end", "end,G", "edge(True)", "To the end"),
        Action(
            "changes.back", "escape", "back", "Choose no lines; end the search; to the list", "list"
        ),
        Action("changes.list", "left", "screen.to_list", "To the list"),
        CHAT,
        HELP,
    ),
    Where.COMMENT: (
        Action("comment.keep", "enter", "", "Keep the comment", "keep"),
        Action("comment.newline", "ctrl+j,alt+enter,shift+enter", "", "New line", "line"),
        Action(
            "comment.leave", "escape", "", "Leave it unfinished: it is kept, and not sent", "leave"
        ),
    ),
    Where.SUMMARY: (
        Action("summary.send", "enter", "", "Send the comments as one message", "send"),
        Action("summary.newline", "ctrl+j,alt+enter,shift+enter", "", "New line", "line"),
        Action("summary.leave", "escape", "", "Do not send yet", "not yet"),
    ),
    Where.SEARCH: (
        Action("search.go", "enter", "", "To the first place", "search"),
        Action("search.leave", "escape", "", "Do not search", "leave"),
    ),
}
