"""Actions in the tabs of a replica."""

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
from quarterdeck.tui.actions.replicas import (
    FIX,
    GET_CHANGES,
    PERMISSION_RULES,
    PULL_REQUEST,
    REWIND,
)

_NEW_LINE = Action("composer.newline", "ctrl+j,alt+enter,shift+enter", "", "New line", "line")


def _moving(place: str, *, end: str) -> tuple[Action, ...]:
    """Return the keys that move the cursor in a place of many lines."""
    return (
        Action(f"{place}.down", "down,j", "move(1)", "Down"),
        Action(f"{place}.up", "up,k", "move(-1)", "Up"),
        Action(f"{place}.page-down", "pagedown,ctrl+f", "page(1)", "Page down"),
        Action(f"{place}.page-up", "pageup,ctrl+b", "page(-1)", "Page up"),
        Action(f"{place}.top", "home,g", "edge(False)", "Top"),
        Action(f"{place}.end", end, "edge(True)", "Bottom"),
    )


ATTACH = Action("composer.attach", "ctrl+o", "attach", "Attach a file")
DETACH = Action("composer.detach", "alt+d", "detach", "Remove attachments")

PERMISSIONS = {
    "allow_once": "question.allow",
    "allow_always": "question.allow-always",
    "reject_once": "question.reject",
    "reject_always": "question.reject-always",
}
"""The actions that give an answer, by the kind of the answer."""
_LETTERS = "abcdefuxz"
"""Not those that move in a question or leave it."""
CHOICES = tuple(f"question.option-{number}" for number in range(1, len(_LETTERS) + 1))
"""Those of answers whose kind is unknown or already used by another answer."""

_OPTIONS = tuple(
    Action(id, letter, "", f"Choose option {number}")
    for number, (id, letter) in enumerate(zip(CHOICES, _LETTERS, strict=True), 1)
)
REJECT_WHY = Action(
    "question.reject-why", "t", "own.reject_why", "Reject and say why", "reject and say why"
)
ADD_RULE = Action(
    "question.add-rule",
    "r",
    "",
    "Always allow such commands (adds a permission rule)",
    "add a rule",
)
_ANSWERING = (
    Action("question.up", "up,k", "", "Mark the previous answer"),
    Action("question.down", "down,j", "", "Mark the next answer"),
    Action("question.choose", "enter", "", "Give the marked answer"),
    Action("question.page-up", "pageup", "", "Scroll a long question up"),
    Action("question.page-down", "pagedown", "", "Scroll a long question down"),
    Action("question.transcript", "tab", "to_transcript", "Go to transcript", "transcript"),
    Action("question.list", "escape", "to_list", "Back to list", "list"),
)
_CHATS = (
    QUESTION,
    Action("chat.new", "ctrl+n", "new_chat", "New chat"),
    Action("chat.next", "ctrl+pagedown", "turn_chat(1)", "Next chat"),
    Action("chat.previous", "ctrl+pageup", "turn_chat(-1)", "Previous chat"),
    Action("chat.model", "alt+m", "pick_model", "Switch model or agent"),
    Action("chat.mode", "alt+s", "pick_setting('permission_mode')", "Choose permission mode"),
    PERMISSION_RULES,
    Action("chat.thinking", "alt+e", "pick_setting('thinking_level')", "Choose thinking level"),
    Action("chat.goal", "alt+g", "goal", "Set the goal and its token budget, or remove it"),
    Action("chat.goal-switch", "alt+p", "switch_goal", "Pause / resume goal"),
    Action("chat.plan-accept", "alt+a", "accept_plan", "Approve plan"),
    Action("chat.plan-change", "alt+c", "change_plan", "Request changes"),
)

_READING = (
    Action("transcript.find", "slash", "find", "Find in the transcript"),
    Action("transcript.find-next", "n", "find_again(1)", "Next match"),
    Action("transcript.find-previous", "N", "find_again(-1)", "Previous match"),
    Action("transcript.page", "o", "open_block", "Open the block in $PAGER"),
    Action("transcript.edit", "O", "open_all", "Open the transcript in $EDITOR"),
    Action("transcript.export", "e", "export", "Export chat"),
    Action("transcript.view", "v", "view_images", "Show the images of the block"),
    Action("transcript.images", "s", "save_images", "Save the images of the block"),
    Action("chat.create", "c", "new_chat", "New chat"),
    Action("chat.rename", "r", "rename_chat", "Rename the chat"),
    Action("chat.delete", "x", "delete_chat", "Delete chat (asks first)"),
)

_WRITING = (
    Action("composer.editor", "ctrl+g", "editor", "Edit message in $EDITOR"),
    Action("composer.paste", "alt+o", "open_paste", "Open a long paste in $PAGER"),
    ATTACH,
    DETACH,
)

_SEND = Action("composer.send", "enter", "", "Send, or queue after the running turn", "send")
_LEAVE = Action("composer.list", "escape", "to_list", "Back to list (draft kept)", "list")
_VIM = (
    Action("vim.insert", "i,a,I,A,o,O", "", "Insert mode (esc leaves it)", "insert", fixed=True),
    Action("vim.visual", "v,V", "", "Select characters or lines", "select", fixed=True),
    Action("vim.operator", "d,c,y", "", "Delete, change, copy", "delete", fixed=True),
    Action("vim.move", "h,j,k,l,w,b,e,W,B,E,0,^,$", "", "Move, with a count", fixed=True),
    Action("vim.lines", "g g,G,{,}", "", "First line, last line, paragraph", fixed=True),
    Action("vim.search", "f,F,t,T,;,comma", "", "Search in the line, search again", fixed=True),
    Action("vim.change", "x,X,s,S,C,D,Y,r,J,~", "", "Change characters or lines", fixed=True),
    Action("vim.put", "p,P", "", "Insert what was deleted or copied", fixed=True),
    Action("vim.undo", "u,ctrl+r", "", "Undo, redo", fixed=True),
    Action("vim.repeat", "full_stop", "", "Repeat the last change", fixed=True),
)
"""All of them follow vim, so none can be another key."""

CHAT_PLACES: dict[KeyContext, tuple[Action, ...]] = {
    KeyContext.CHAT: (
        Action("transcript.toggle", "enter", "", "Expand or collapse", "open"),
        WRITE,
        INTERRUPT,
        Action("transcript.find", "slash", "", "Find in the transcript", "find"),
        Action("transcript.copy", "y", "", "Copy the selected text, or the block", "copy"),
        TERMINAL,
        WAKE,
        TO_LIST,
        GET_CHANGES,
        PULL_REQUEST,
        FIX,
        REWIND,
        Action(
            "transcript.previous-prompt",
            "left_square_bracket",
            "",
            "Previous prompt",
            "prompts",
        ),
        Action("transcript.next-prompt", "right_square_bracket", "", "Next prompt"),
        Action("transcript.next", "tab", "next_part", "Queue / composer"),
        Action("transcript.up", "up,k", "", "Up"),
        Action("transcript.down", "down,j", "", "Down"),
        Action("transcript.page-up", "pageup,ctrl+b", "", "Page up"),
        Action("transcript.page-down", "pagedown,ctrl+f", "", "Page down"),
        Action("transcript.top", "home,g", "", "Top"),
        Action("transcript.bottom", "end", "", "Bottom"),
        HELP,
    ),
    KeyContext.PERMISSION: (
        Action("question.allow", "y", "", "Allow once", "allow"),
        Action("question.allow-always", "a", "", "Always allow", "always"),
        Action("question.reject", "n", "", "Reject", "reject"),
        Action("question.reject-always", "N", "", "Always reject"),
        REJECT_WHY,
        ADD_RULE,
        *_OPTIONS[1:],
        WRITE,
        INTERRUPT,
        *_ANSWERING,
        HELP,
    ),
    KeyContext.CHOICE: (*_OPTIONS, WRITE, INTERRUPT, *_ANSWERING, HELP),
    KeyContext.REJECTION: (
        Action("rejection.send", "enter", "", "Reject, and send the reason", "reject and send"),
        Action("rejection.back", "escape", "own.back", "Back to the question", "back"),
    ),
    KeyContext.READING: _READING,
    KeyContext.PICTURE: (
        Action("picture.close", "escape,q", "back", "Back to where it was opened", "back"),
        Action("picture.next", "right,n", "turn(1)", "Next image", "next"),
        Action("picture.before", "left,p", "turn(-1)", "Previous image", "previous"),
        HELP,
    ),
    KeyContext.CHAT_FIND: (
        Action("find.go", "enter", "", "Go to transcript (n and N move)", "find"),
        Action("find.end", "escape", "", "Close search", "close"),
    ),
    KeyContext.QUEUE: (
        Action("queue.resend", "enter", "", "Resend", "resend"),
        Action("queue.edit", "e", "", "Edit", "edit"),
        Action("queue.drop", "d,delete", "", "Remove", "remove"),
        Action("queue.steer", "s", "", "Put into the running turn", "steer"),
        Action("queue.join", "plus", "", "Join to the previous message", "join"),
        Action("queue.up", "K,shift+up", "", "Move up", "up"),
        Action("queue.down", "J,shift+down", "", "Move down", "down"),
        Action("queue.above", "up,k", "", "Previous message"),
        Action("queue.below", "down,j", "", "Next message"),
        Action("queue.back", "escape,tab", "write", "Go to composer", "composer"),
        HELP,
    ),
    KeyContext.COMPOSER: (
        _SEND,
        Action("composer.steer", "alt+t", "", "Send into the running turn"),
        _NEW_LINE._replace(help="New line (also \\ + send key)"),
        Action("composer.plan", "ctrl+t", "", "Toggle plan mode for the next message", "plan"),
        Action("composer.goal", "ctrl+l", "", "Toggle goal mode for the next message"),
        Action("composer.interrupt", "ctrl+x", "interrupt", "Interrupt", "interrupt"),
        Action("composer.commands", "/", "", "Agent commands (at the start)", fixed=True),
        Action("composer.files", "@", "", "Mention a file", fixed=True),
        Action("composer.history", "up and down", "", "Prompt history", fixed=True),
        Action("composer.transcript", "tab", "to_transcript", "Go to transcript", "transcript"),
        Action("composer.queue", "shift+tab", "to_queue", "Go to queue"),
        _LEAVE,
    ),
    KeyContext.COMPOSER_NORMAL: (_SEND, *_VIM, _LEAVE),
    KeyContext.WRITING: _WRITING,
    KeyContext.SECRET: (
        Action("secret.give", "enter", "", "Submit the answer (never stored)", "answer"),
        Action("secret.transcript", "tab", "to_transcript", "Go to transcript", "transcript"),
        Action("secret.list", "escape", "to_list", "Back to list", "list"),
    ),
    KeyContext.CHATS: _CHATS,
}


PREFIX = Action(
    "terminal.prefix",
    "ctrl+g",
    "",
    "Prefix key (press twice to send it)",
    "commands: list, chat, new, find, copy …",
)
READ = Action("terminal.read", "left_square_bracket", "", "Copy mode", "read")
SEARCH = Action("terminal.find", "slash", "", "Search screen and scrollback", "find")


_SPLIT_BELOW = "Split: a second terminal below"
_SPLIT_BESIDE = "Split: a second terminal beside this one, where there is room"

TERMINAL_PLACES: dict[KeyContext, tuple[Action, ...]] = {
    KeyContext.TERMINAL: (
        PREFIX,
        Action("terminal.scroll", "shift+pageup", "", "Scroll up", "scroll up"),
        Action("terminal.scroll-forward", "shift+pagedown", "", "Scroll down"),
    ),
    KeyContext.TERMINAL_COMMAND: (
        Action("terminal.list", "l,left", "", "Back to list", "list"),
        Action("terminal.chat", "m", "", "Go to chat", "chat"),
        Action(
            "terminal.next-waiting",
            "ctrl+right_square_bracket,w",
            "",
            "Go to the next replica that needs you",
        ),
        Action("terminal.new", "c", "", "New terminal", "new"),
        Action("terminal.next", "n", "", "Next terminal", "next"),
        Action("terminal.close", "x", "", "Close the terminal (asks first)", "close"),
        Action("terminal.split-below", "quotation_mark", "split(False)", _SPLIT_BELOW, "split"),
        Action("terminal.split-beside", "percent_sign", "split(True)", _SPLIT_BESIDE),
        Action("terminal.zoom", "z", "", "Hide the list beside the terminal (on / off)", "zoom"),
        Action("terminal.other", "o", "other_terminal", "Go to the other terminal of a split"),
        Action("terminal.alone", "exclamation_mark", "terminal_alone", "Undo the split"),
        SEARCH,
        READ,
        Action("terminal.link", "u", "", "Open or copy the newest link", "link"),
        Action("terminal.rename", "comma", "", "Name the terminal", "name"),
        Action("terminal.previous", "p", "", "Previous terminal"),
        Action("terminal.allow", "y", "", "Allow clipboard write"),
        Action("terminal.search", "f3", "", "Search in all chats"),
        Action("terminal.palette", "ctrl+p", "", "Search commands and replicas"),
        Action("terminal.help", "question_mark,f1", "", "Help for the terminal", "help"),
        Action("terminal.cancel", "escape", "", "Cancel"),
        Action("terminal.1", "1", "", "First terminal", "to 8"),
        *(Action(f"terminal.{n}", str(n), "", f"Terminal {n}") for n in range(2, 9)),
    ),
    KeyContext.TERMINAL_READING: (
        Action("reading.leave", "q,escape", "", "Back to the program", "leave"),
        Action("reading.mark", "v,space", "", "Start or clear selection", "mark"),
        Action("reading.copy", "y,enter", "", "Copy the selection and leave", "copy"),
        Action("reading.find", "slash", "", SEARCH.help, "find"),
        Action("reading.older", "n", "", "Previous match (older)", "older"),
        Action("reading.newer", "N", "", "Next match", "newer"),
        Action("reading.link", "u", "", "Previous link", "link"),
        Action("reading.next-link", "U", "", "Next link"),
        Action("reading.open", "o", "", "Open or copy the link (asks first)"),
        Action("reading.edit", "O", "", "Open screen and scrollback in $EDITOR", "editor"),
        Action("reading.mark-word", "W", "", "Select words"),
        Action("reading.mark-lines", "V", "", "Select lines"),
        Action("reading.swap", "s", "", "Other end of selection"),
        Action("reading.left", "h,left", "", "Left"),
        Action("reading.right", "l,right", "", "Right"),
        Action("reading.up", "k,up", "", "Up"),
        Action("reading.down", "j,down", "", "Down"),
        Action("reading.next-word", "w,ctrl+right", "", "Next word"),
        Action("reading.previous-word", "b,ctrl+left", "", "Previous word"),
        Action("reading.word-end", "e", "", "End of word"),
        Action("reading.line-start", "0,home", "", "Start of line"),
        Action("reading.line-text", "circumflex_accent", "", "First text in line"),
        Action("reading.line-end", "dollar_sign,end", "", "End of line"),
        Action("reading.page-up", "pageup,ctrl+b,shift+pageup", "", "Page up"),
        Action("reading.page-down", "pagedown,ctrl+f,shift+pagedown", "", "Page down"),
        Action("reading.half-up", "ctrl+u", "", "Half page up"),
        Action("reading.half-down", "ctrl+d", "", "Half page down"),
        Action("reading.oldest", "g,ctrl+home", "", "Oldest line"),
        Action("reading.newest", "G,ctrl+end", "", "Newest line"),
        Action("reading.view-top", "H", "", "Top of view"),
        Action("reading.view-middle", "M", "", "Middle of view"),
        Action("reading.view-bottom", "L", "", "Bottom of view"),
    ),
    KeyContext.TERMINAL_FIND: (
        Action("finding.done", "enter", "", "Keep the search (n and N move)", "go there"),
        Action("finding.older", "up", "", "Previous match (older)", "older"),
        Action("finding.newer", "down", "", "Next match", "newer"),
        Action("finding.leave", "escape", "", "Back to the program", "leave"),
    ),
    KeyContext.TERMINAL_NAME: (
        Action("naming.done", "enter", "", "Save name (empty: the program's title)", "name it"),
        Action("naming.leave", "escape", "", "Leave unchanged", "leave"),
    ),
    KeyContext.TERMINAL_LINK: (
        Action("link.open", "o,enter", "", "Open the address in the browser", "open"),
        Action("link.copy", "c,y", "", "Copy the address", "copy"),
        Action("link.leave", "escape,q", "", "Neither", "leave"),
    ),
    KeyContext.NO_TERMINAL: (
        Action("terminal.again", "enter", "", "Open a new terminal", "open"),
        Action("terminal.dismiss", "x", "", "Close ended terminals", "close"),
        Action("ended.find", "slash", "", SEARCH.help, "find"),
        Action("ended.read", "left_square_bracket", "", READ.help, "read"),
        CHAT,
        WAKE,
        TO_LIST,
        HELP,
    ),
}


CHANGES_PLACES: dict[KeyContext, tuple[Action, ...]] = {
    KeyContext.CHANGES: (
        Action(
            "changes.act",
            "enter",
            "act",
            "Comment on the line / expand or collapse",
            "comment",
        ),
        Action("changes.hunk", "right_square_bracket", "hunk(1)", "Next change", "next"),
        Action("changes.hunk-back", "left_square_bracket", "hunk(-1)", "Previous change"),
        Action("changes.file", "right_curly_bracket,tab", "file(1)", "Next file"),
        Action("changes.file-back", "left_curly_bracket,shift+tab", "file(-1)", "Previous file"),
        Action("changes.mark", "v", "mark", "Select lines", "lines"),
        Action("changes.comment", "c", "comment", "Comment on selection"),
        Action("changes.send", "S", "send", "Send all comments as one message", "send comments"),
        Action("changes.drop", "d,delete", "drop", "Delete comment"),
        Action("changes.comments", "greater_than_sign", "next_comment(1)", "Next comment"),
        Action("changes.comments-back", "less_than_sign", "next_comment(-1)", "Previous comment"),
        Action(
            "changes.against",
            "b",
            "against",
            "Show uncommitted changes / all since the base",
            "base",
        ),
        Action("changes.stage", "space", "stage", "Mark / unmark the file for a commit", "mark"),
        Action("changes.commit", "C", "commit", "Commit the marked files, or all", "commit"),
        Action("changes.merge", "U", "update('merge')", "Update from base: merge", "update"),
        Action("changes.rebase", "R", "update('rebase')", "Update from base: rebase"),
        Action("changes.resolve", "A", "resolve", "Ask the agent to resolve the conflicts"),
        Action("changes.push", "P", "push", "Push to origin (asks first)"),
        GET_CHANGES,
        Action("changes.split", "u", "split", "Toggle split / unified", "view"),
        Action("changes.fold", "z", "fold", "Expand / collapse file"),
        Action("changes.fold-all", "Z", "fold_all", "Expand / collapse all files", "fold all"),
        Action("changes.search", "slash", "search", "Search lines and paths", "search"),
        Action("changes.match", "n", "match(1)", "Next match"),
        Action("changes.match-back", "N", "match(-1)", "Previous match"),
        Action("changes.copy", "y", "copy(False)", "Copy the selection or comment"),
        Action("changes.copy-file", "Y", "copy(True)", "Copy file diff"),
        Action("changes.page", "p", "outside('pager')", "Open diff in $PAGER"),
        Action("changes.edit", "e", "outside('editor')", "Open a copy in $EDITOR"),
        FIX,
        Action("changes.read", "r", "read", "Refresh"),
        WAKE,
        *_moving("changes", end="end"),
        Action("changes.back", "escape", "back", "Cancel / back", "list"),
        Action("changes.list", "left", "screen.to_list", "Back to list"),
        CHAT,
        HELP,
    ),
    KeyContext.COMMENT: (
        Action("comment.keep", "enter", "", "Save comment", "save"),
        _NEW_LINE._replace(id="comment.newline"),
        Action("comment.leave", "escape", "", "Keep as draft", "draft"),
    ),
    KeyContext.SUMMARY: (
        Action("summary.send", "enter", "", "Send the comments as one message", "send"),
        _NEW_LINE._replace(id="summary.newline"),
        Action("summary.leave", "escape", "", "Keep as draft", "draft"),
    ),
    KeyContext.COMMIT: (
        Action("commit.send", "enter", "", "Commit", "commit"),
        _NEW_LINE._replace(id="commit.newline"),
        Action("commit.leave", "escape", "", "Cancel", "cancel"),
    ),
    KeyContext.SEARCH: (
        Action("search.go", "enter", "", "First match", "search"),
        Action("search.leave", "escape", "", "Close search", "close"),
    ),
}


EXEC_PLACES: dict[KeyContext, tuple[Action, ...]] = {
    KeyContext.EXEC: (
        Action("exec.run", "enter", "", "Run the command", "run"),
        Action("exec.earlier", "up", "", "Previous command", "history"),
        Action("exec.later", "down", "", "Next command"),
        Action(
            "exec.interrupt",
            "ctrl+x",
            "interrupt",
            "Interrupt the last command (again: kill)",
            "interrupt",
        ),
        Action("exec.output", "tab", "to_output", "Go to output", "output"),
        Action("exec.list", "escape", "screen.to_list", "Back to list", "list"),
    ),
    KeyContext.EXEC_OUTPUT: (
        Action("exec.write", "tab,m", "to_prompt", "Go to prompt", "prompt"),
        Action("exec.again", "enter", "again", "Edit and run again", "again"),
        Action("exec.stop", "ctrl+x,i", "interrupt", "Interrupt (again: kill)", "interrupt"),
        Action("exec.fold", "space", "fold", "Expand / collapse output", "fold"),
        Action("exec.next", "right_square_bracket", "run(1)", "Next command", "next"),
        Action("exec.before", "left_square_bracket", "run(-1)", "Previous command"),
        Action("exec.copy", "y", "copy", "Copy the output", "copy"),
        Action("exec.clear", "X", "clear", "Clear output"),
        WAKE,
        *_moving("exec", end="end,G"),
        CHAT,
        TO_LIST,
        HELP,
    ),
}


FIND = Action("text.find", "slash", "find", "Find in the text", "find")
COPY = Action("text.copy", "y", "copy", "Copy the selection", "copy")

FINDING = (
    FIND,
    Action("text.find-next", "n", "find_next(1)", "Next match"),
    Action("text.find-previous", "N", "find_next(-1)", "Previous match"),
    COPY,
)
"""Actions of every reader."""

READING_PLACES: dict[KeyContext, tuple[Action, ...]] = {
    KeyContext.FIND: (
        Action("find.keep", "enter", "leave(True)", "Back to the text, keep matches", "keep"),
        Action("find.next", "down", "step(1)", "Next match", "next"),
        Action("find.previous", "up", "step(-1)", "Previous match", "previous"),
        Action("find.drop", "escape", "leave(False)", "Back to the text", "back"),
    ),
}


_SCRIPT = Action("hook.script", "v", "forward('script')", "Script / output", "script")
_RELOAD_LOGS = Action("hook.again", "r", "forward('again')", "Refresh")

HOOKS_PLACES: dict[KeyContext, tuple[Action, ...]] = {
    KeyContext.HOOKS: (
        Action("hook.output", "enter,tab", "forward('output')", "Go to output", "output"),
        _SCRIPT,
        WAKE,
        _RELOAD_LOGS,
        TO_LIST,
        HELP,
    ),
    KeyContext.HOOK: (
        *FINDING,
        _SCRIPT,
        WAKE,
        Action("hook.runs", "escape,tab", "forward('runs')", "Go to runs", "runs"),
        _RELOAD_LOGS,
        HELP,
    ),
}


_EDITOR = Action("file.edit", "e", "forward('edit')", "Open a copy in $EDITOR", "editor")
_PAGER = Action("file.page", "p", "forward('page')", "Open a copy in $PAGER", "pager")
_VIEW_FILE = Action("file.view", "v", "forward('view')", "Show an image in the whole window")
_MENTION_FILE = Action("file.mention", "m", "forward('mention')", "Mention in message", "mention")
_COPY_PATH = Action("file.copy-path", "Y", "forward('copy-path')", "Copy the path")
_RELOAD_FILE = Action("file.again", "r", "forward('again')", "Refresh")
_TO_FINDER = Action("file.finder", "tab,escape", "forward('finder')", "Go to finder", "finder")

FILES_PLACES: dict[KeyContext, tuple[Action, ...]] = {
    KeyContext.FINDER: (
        Action("finder.open", "enter", "forward('open')", "Open the file under the cursor", "open"),
        Action("finder.down", "down", "forward('down')", "Next file"),
        Action("finder.up", "up", "forward('up')", "Previous file"),
        Action("finder.page-down", "pagedown", "forward('page-down')", "Page down"),
        Action("finder.page-up", "pageup", "forward('page-up')", "Page up"),
        Action("finder.found", "tab", "forward('found')", "Results", "results"),
        Action("finder.list", "escape", "screen.to_list", "Go to replicas", "list"),
    ),
    KeyContext.FOUND: (
        Action("found.open", "enter", "forward('open')", "Open the file", "open"),
        _MENTION_FILE,
        _COPY_PATH._replace(id="found.copy-path", keys="y", brief="copy path"),
        Action("found.finder", "slash,tab", "forward('finder')", "Go to finder", "find"),
        _EDITOR,
        _PAGER,
        _RELOAD_FILE,
        WAKE,
        TO_LIST,
        HELP,
    ),
    KeyContext.FILE: (
        *FINDING,
        _MENTION_FILE,
        _TO_FINDER,
        _VIEW_FILE,
        _EDITOR,
        _PAGER,
        _COPY_PATH,
        _RELOAD_FILE,
        WAKE,
        HELP,
    ),
}


_SAVE = Action("canvas.save", "s", "forward('save')", "Save to a local file", "save")
_UPLOAD = Action("canvas.upload", "u", "forward('upload')", "Upload a file", "upload")
_MENTION_CANVAS = Action(
    "canvas.mention", "m", "forward('mention')", "Mention in message", "mention"
)
_RELOAD_CANVAS = Action("canvas.again", "r", "forward('again')", "Refresh")

CANVAS_PLACES: dict[KeyContext, tuple[Action, ...]] = {
    KeyContext.CANVAS: (
        Action("canvas.open", "enter", "forward('open')", "Open the file", "open"),
        _SAVE,
        _UPLOAD,
        _MENTION_CANVAS,
        WAKE,
        _RELOAD_CANVAS,
        TO_LIST,
        HELP,
    ),
    KeyContext.CANVAS_FILE: (
        *FINDING,
        Action("canvas.source", "v", "forward('source')", "Raw / rendered; whole image", "text"),
        _SAVE,
        _MENTION_CANVAS,
        Action("canvas.items", "escape,tab", "forward('items')", "All files", "files"),
        _UPLOAD,
        _RELOAD_CANVAS,
        WAKE,
        HELP,
    ),
    KeyContext.LOCAL_PATH: (
        Action("path.done", "enter", "done", "Use this path", "ok"),
        Action("path.complete", "tab", "complete", "Complete the path", "complete"),
        Action("path.cancel", "escape", "cancel", "Cancel", "cancel"),
    ),
}
