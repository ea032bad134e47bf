"""Keys of single commands in a replica."""

from quarterdeck.tui.actions.anywhere import CHAT, HELP, TO_LIST, WAKE
from quarterdeck.tui.actions.model import Action, Where

PLACES: dict[Where, tuple[Action, ...]] = {
    Where.EXEC: (
        Action("exec.run", "enter", "", "Run the command", "run"),
        Action("exec.earlier", "up", "", "The command before", "history"),
        Action("exec.later", "down", "", "The command after"),
        Action(
            "exec.interrupt",
            "ctrl+x",
            "interrupt",
            "Interrupt the last one; again: kill it",
            "interrupt",
        ),
        Action("exec.output", "tab", "to_output", "To the output", "output"),
        Action("exec.list", "escape", "screen.to_list", "To the list", "list"),
    ),
    Where.EXEC_OUTPUT: (
        Action("exec.write", "tab,m", "to_prompt", "To the prompt", "prompt"),
        Action("exec.again", "enter", "again", "Put the command into the prompt again", "again"),
        Action("exec.stop", "ctrl+x,i", "interrupt", "Interrupt it; again: kill it", "interrupt"),
        Action("exec.fold", "space", "fold", "Fold or open the output", "fold"),
        Action("exec.next", "right_square_bracket", "run(1)", "To the next command", "next"),
        Action("exec.before", "left_square_bracket", "run(-1)", "To the command before"),
        Action("exec.copy", "y", "copy", "Copy the output", "copy"),
        Action("exec.clear", "X", "clear", "Forget all commands that have ended"),
        WAKE,
        Action("exec.down", "down,j", "move(1)", "Down"),
        Action("exec.up", "up,k", "move(-1)", "Up"),
        Action("exec.page-down", "pagedown,ctrl+f", "page(1)", "Page down"),
        Action("exec.page-up", "pageup,ctrl+b", "page(-1)", "Page up"),
        Action("exec.top", "home,g", "edge(False)", "To the beginning"),
        Action("exec.end", "end,G", "edge(True)", "To the end"),
        CHAT,
        TO_LIST,
        HELP,
    ),
}
