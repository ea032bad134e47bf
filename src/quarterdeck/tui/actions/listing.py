"""Keys of the list of replicas, and of the tabs of one."""

from dataclasses import replace

from quarterdeck.tui.actions.anywhere import CHAT, HELP, INTERRUPT, TERMINAL, WAKE
from quarterdeck.tui.actions.model import Action, Where

PLACES: dict[Where, tuple[Action, ...]] = {
    Where.LIST: (
        Action("replica.new", "n", "new_replica", "Create a replica", "new"),
        Action("replica.open", "enter,right,m", "open", "Write to the replica", "open"),
        TERMINAL,
        Action("list.narrow", "slash", "narrow", "Show some: by name, state, repository", "find"),
        HELP,
        Action("list.mark", "space", "mark", "Mark for the next command, or no longer", "mark"),
        Action("replica.sleep", "s", "sleep", "Put to sleep: processes end, files stay", "sleep"),
        WAKE,
        Action("replica.delete", "d", "delete", "Delete with all its files (asks)", "delete"),
        Action("app.quit", "q", "leave", "Close the cockpit; everything goes on", "quit"),
        replace(INTERRUPT, brief=""),
        Action(
            "replica.archive", "A", "archive", "Archive: files packed away, history stays readable"
        ),
        Action("list.mark-all", "asterisk", "mark_all", "Mark all that are shown, or none"),
        Action("list.everything", "escape", "everything", "Show all, mark none"),
        Action("page.environments", "e", "page('environments')", "What replicas are made with"),
        Action("page.automations", "a", "page('automations')", "Schedules, events and their runs"),
        Action("page.settings", "comma", "page('settings')", "Settings"),
        Action("list.up", "up,k", "", "The replica above"),
        Action("list.down", "down,j", "", "The replica below"),
        Action("list.page-up", "pageup", "", "A page up"),
        Action("list.page-down", "pagedown", "", "A page down"),
        Action("list.first", "home,g", "", "The first replica"),
        Action("list.last", "end,G", "", "The last replica"),
    ),
    Where.NARROWING: (
        Action("narrow.done", "enter,down", "leave_line", "To the list, as it is now", "list"),
        Action("narrow.all", "escape", "all", "Show everything again", "show all"),
    ),
    Where.TABS: (
        CHAT,
        Action("tab.terminal", "2", "show('terminal')", "The terminals"),
        Action("tab.changes", "3", "show('changes')", "The changes"),
        Action("tab.files", "4", "show('files')", "The files of its repositories"),
        Action("tab.canvas", "5", "show('canvas')", "Plans, reports and other files of agents"),
        Action("tab.hooks", "6", "show('hooks')", "The logs of its hooks"),
        Action("tab.exec", "7", "show('exec')", "Single commands"),
        Action("info.open", "o", "to_info", "To the info panel, to copy addresses"),
        Action("info.toggle", "f2", "toggle_info", "The info panel on or off, from 120 columns"),
    ),
}
