"""Actions on replicas: in the list, with git, in the panel of facts."""

from quarterdeck.tui.actions.model import (
    CHAT,
    HELP,
    INTERRUPT,
    QUESTION,
    TERMINAL,
    TO_LIST,
    WAKE,
    WRITE,
    Action,
    KeyContext,
)

GET_CHANGES = Action(
    "replica.get-changes",
    "G",
    "screen.get_changes",
    "Get changes: fetch, commit, apply, merge, push, pull request, patch",
    "get changes",
)
PULL_REQUEST = Action(
    "replica.pull-request", "P", "screen.pull_request", "Pull request: open one, or show it"
)
FIX = Action(
    "replica.fix-checks",
    "F",
    "screen.fix_checks",
    "Fix failed checks: send them to the agent",
)
REWIND = Action(
    "replica.rewind", "R", "screen.rewind", "Rewind files to the start of a turn (asks first)"
)
PERMISSION_RULES = Action(
    "replica.permissions",
    "alt+r",
    "screen.permissions",
    "Permission policy and rules: list, add, remove",
)
FORK = Action(
    "replica.fork", "f", "screen.fork", "Fork: another replica with the same files and branches"
)
GETTING = (
    Action("get.fetch", "f", "start('fetch')", "Fetch the branch into your repository", "fetch"),
    Action("get.commit", "c", "start('commit')", "Commit all changes", "commit"),
    Action("get.apply", "a", "start('apply')", "Apply as a patch to your checkout", "apply"),
    Action("get.merge", "m", "start('merge')", "Merge into the checked-out branch", "merge"),
    Action("get.push", "p", "start('push')", "Push to origin", "push"),
    Action("get.pull", "o", "start('pull')", "Open or show the pull request", "pull request"),
    Action("get.save", "d", "start('save')", "Save as a patch file", "save"),
)
"""The lines of Get changes, in order."""
MERGING = (
    Action("pull.merge", "m", "start('merge')", "Merge (asks first)", "merge"),
    Action("pull.squash", "s", "start('squash')", "Squash merge (asks first)", "squash"),
    Action(
        "pull.rebase", "b", "start('rebase')", "Rebase onto the base branch (asks first)", "rebase"
    ),
    Action("pull.fix", "x", "start('fix')", "Send the failed checks to the agent", "fix"),
    Action("pull.browse", "w", "start('browse')", "Open in the browser", "browser"),
    Action("pull.copy", "y", "start('copy')", "Copy the URL", "copy"),
    Action("pull.open", "o", "start('open')", "Open another pull request", "open another"),
)
"""The lines of a pull request, in order."""


def _choosing(dialog: str, *turning: Action) -> tuple[Action, ...]:
    """Return the keys of a dialog of choices besides those of its lines."""
    return (
        Action(f"{dialog}.run", "enter", "run", "Run the selected action", "run"),
        Action(f"{dialog}.up", "up,k", "move(-1)", "Up"),
        Action(f"{dialog}.down", "down,j", "move(1)", "Down"),
        *turning,
        Action(f"{dialog}.again", "r", "look", "Refresh"),
        Action(f"{dialog}.close", "escape", "cancel", "Cancel / close", "close"),
        HELP,
    )


GIT_PLACES: dict[KeyContext, tuple[Action, ...]] = {
    KeyContext.GET_CHANGES: (
        *GETTING,
        Action(
            "get.force",
            "F",
            "start('force')",
            "Replace a diverged local branch",
            "replace",
        ),
        Action("get.fix", "x", "start('fix')", "Send the failed checks to the agent", "fix checks"),
        Action("get.message", "e", "edit", "Edit the commit message", "edit message"),
        *_choosing(
            "get",
            Action("get.repository", "tab", "turn(1)", "Next repository"),
            Action("get.repository-back", "shift+tab", "turn(-1)", "Previous repository"),
        ),
    ),
    KeyContext.PULL_REQUEST: (
        *MERGING,
        *_choosing(
            "pull",
            Action("pull.next", "tab", "turn(1)", "Next pull request"),
            Action("pull.previous", "shift+tab", "turn(-1)", "Previous pull request"),
        ),
    ),
    KeyContext.REWIND: (
        Action("rewind.run", "enter", "run", "Rewind to the checkpoint (asks first)", "rewind"),
        Action("rewind.undo", "u", "undo", "Undo the rewind", "undo"),
        Action("rewind.tell", "t", "tell", "Tell the agent about the rewind (on / off)", "tell"),
        Action("rewind.again", "r", "look", "Refresh"),
        Action("rewind.up", "up,k", "", "Up"),
        Action("rewind.down", "down,j", "", "Down"),
        Action("rewind.close", "escape", "close", "Close", "close"),
        HELP,
    ),
}


LIST_PLACES: dict[KeyContext, tuple[Action, ...]] = {
    KeyContext.LIST: (
        Action("replica.new", "n", "new_replica", "Create a replica", "new"),
        Action("replica.open", "enter,right", "open", "Open, at the tab shown last", "open"),
        WRITE._replace(brief=""),
        TERMINAL,
        Action("list.narrow", "slash", "narrow", "Filter replicas", "find"),
        Action("list.sort", "S", "sort_list", "Sort the list, whose order is kept here", "sort"),
        HELP,
        GET_CHANGES,
        PULL_REQUEST,
        FIX,
        REWIND,
        FORK,
        PERMISSION_RULES,
        Action("list.mark", "space", "mark", "Select / deselect", "mark"),
        Action("replica.sleep", "s", "sleep", "Sleep (stops processes, keeps files)", "sleep"),
        WAKE,
        Action("replica.delete", "d", "delete", "Delete (asks first)", "delete"),
        Action("list.table", "L", "table", "Table over the whole width (on / off)", "table"),
        Action("app.quit", "q", "leave", "Quit (agents keep running)", "quit"),
        INTERRUPT._replace(brief=""),
        Action("replica.archive", "A", "archive", "Archive (compresses files, keeps history)"),
        Action("list.mark-all", "asterisk", "mark_all", "Select all / none"),
        Action("list.pin", "p", "pin", "Pin to the top (on / off)"),
        Action(
            "list.group",
            "b",
            "group",
            "Group by repository, environment, source, service, or not at all",
        ),
        Action("list.sort-next", "greater_than_sign", "sort_by(1)", "Sort by the next column"),
        Action("list.sort-previous", "less_than_sign", "sort_by(-1)", "Sort by the column before"),
        Action("list.reverse", "r", "reverse", "Reverse the order"),
        Action("list.wider", "plus", "widen(4)", "Wider list"),
        Action("list.narrower", "minus", "widen(-4)", "Narrower list, down to the usual width"),
        Action("list.everything", "escape", "everything", "Clear filter and selection"),
        Action("page.environments", "e", "page('environments')", "Environments"),
        Action("page.automations", "a", "page('automations')", "Automations"),
        Action("page.settings", "comma", "page('settings')", "Settings"),
        Action("list.up", "up,k", "", "Up"),
        Action("list.down", "down,j", "", "Down"),
        Action("list.page-up", "pageup", "", "Page up"),
        Action("list.page-down", "pagedown", "", "Page down"),
        Action("list.first", "home,g", "", "First"),
        Action("list.last", "end", "", "Last"),
    ),
    KeyContext.NARROWING: (
        Action("narrow.done", "enter,down", "leave_line", "Back to list", "list"),
        Action("narrow.all", "escape", "all", "Clear filter", "clear"),
    ),
    KeyContext.TABS: (
        CHAT,
        Action("tab.terminal", "2,alt+2", "show('terminal')", "Terminal"),
        Action("tab.changes", "3,alt+3", "show('changes')", "Changes"),
        Action("tab.files", "4,alt+4", "show('files')", "Files"),
        Action("tab.canvas", "5,alt+5", "show('canvas')", "Canvas: plans and reports"),
        Action("tab.hooks", "6,alt+6", "show('hooks')", "Hook logs"),
        Action("tab.exec", "7,alt+7", "show('exec')", "Run command"),
        QUESTION,
        GET_CHANGES,
        Action("info.open", "o", "to_info", "Go to info panel (copy addresses)"),
        Action("replica.zoom", "alt+z", "zoom", "Hide the list beside a replica (on / off)"),
        Action(
            "info.toggle",
            "f2",
            "toggle_info",
            "Info panel: cost, tokens (on / off; shown from 150 columns)",
        ),
    ),
}


INFO_PLACES: dict[KeyContext, tuple[Action, ...]] = {
    KeyContext.INFO: (
        Action("info.copy", "enter,y", "copy_link", "Copy the address under the cursor", "copy"),
        Action("info.back", "tab", "screen.from_info", "Back to the replica", "replica"),
        Action("info.hide", "f2", "screen.toggle_info", "Hide the panel", "hide"),
        TO_LIST,
        HELP,
    ),
}
