"""Keys of a chat: its transcript, what waits, and the composer."""

from quarterdeck.tui.actions.anywhere import HELP, INTERRUPT, TERMINAL, TO_LIST, WAKE
from quarterdeck.tui.actions.model import Action, Where

ATTACH = Action("composer.attach", "ctrl+o", "attach", "Attach a file")
DETACH = Action("composer.detach", "alt+d", "detach", "Take attached files off again")

_CHATS = (
    Action("chat.new", "ctrl+n", "new_chat", "Another chat, of any agent"),
    Action("chat.next", "ctrl+pagedown", "turn_chat(1)", "The next chat"),
    Action("chat.previous", "ctrl+pageup", "turn_chat(-1)", "The chat before"),
    Action("chat.model", "alt+m", "pick_model", "The model, or another agent in another chat"),
    Action("chat.goal", "alt+g", "goal", "Set the goal and its token budget"),
    Action("chat.goal-switch", "alt+p", "switch_goal", "Pause the goal, or go on with it"),
    Action("chat.plan-accept", "alt+a", "accept_plan", "Have the plan carried out"),
    Action("chat.plan-change", "alt+c", "change_plan", "Ask for changes of the plan"),
)

_READING = (
    Action("transcript.find", "slash", "find", "Find in the transcript"),
    Action("transcript.find-next", "n", "find_again(1)", "To where it stands next"),
    Action("transcript.find-previous", "N", "find_again(-1)", "To where it stood before"),
    Action("transcript.page", "o", "open_block", "Open the block in $PAGER"),
    Action("transcript.edit", "O", "open_all", "Open the transcript in $EDITOR"),
    Action("transcript.export", "e", "export", "Write the chat to a file"),
    Action("transcript.view", "v", "view_images", "Show the images of the block"),
    Action("transcript.images", "s", "save_images", "Save the images of the block"),
    Action("chat.create", "c", "new_chat", "Another chat, of any agent"),
    Action("chat.rename", "r", "rename_chat", "Rename the chat"),
    Action("chat.delete", "x", "delete_chat", "Delete the chat (asks)"),
)

_WRITING = (
    Action("composer.editor", "ctrl+g", "editor", "The message in $EDITOR"),
    Action("composer.paste", "alt+o", "open_paste", "Read a long paste in $PAGER"),
    ATTACH,
    DETACH,
)

PLACES: dict[Where, tuple[Action, ...]] = {
    Where.CHAT: (
        Action(
            "transcript.toggle", "enter", "", "Open or fold a tool call; answer a question", "open"
        ),
        Action("chat.write", "m", "write", "To the composer", "write"),
        INTERRUPT,
        Action("transcript.answer", "1 to 9", "", "Give this answer to a question", fixed=True),
        Action("transcript.find", "slash", "", "Find in the transcript", "find"),
        Action("transcript.copy", "y", "", "Copy the selected text, or the block", "copy"),
        TERMINAL,
        WAKE,
        TO_LIST,
        Action(
            "transcript.previous-prompt",
            "left_square_bracket",
            "",
            "To your message before",
            "messages",
        ),
        Action("transcript.next-prompt", "right_square_bracket", "", "To your next message"),
        Action("transcript.next", "tab", "next_part", "To waiting messages, or the composer"),
        Action("transcript.up", "up,k", "", "A line up"),
        Action("transcript.down", "down,j", "", "A line down"),
        Action("transcript.page-up", "pageup,ctrl+b", "", "A page up"),
        Action("transcript.page-down", "pagedown,ctrl+f", "", "A page down"),
        Action("transcript.top", "home,g", "", "To the beginning"),
        Action("transcript.bottom", "end,G", "", "To the end"),
        HELP,
    ),
    Where.READING: _READING,
    Where.PICTURE: (
        Action("picture.close", "escape,q", "back", "Back to the transcript", "back"),
        Action("picture.next", "right,n", "turn(1)", "The next image of the block", "next"),
        Action("picture.before", "left,p", "turn(-1)", "The image before", "before"),
        HELP,
    ),
    Where.CHAT_FIND: (
        Action("find.go", "enter", "", "To the transcript: n and N go on", "find"),
        Action("find.end", "escape", "", "Mark nothing any more", "close"),
    ),
    Where.QUEUE: (
        Action(
            "queue.resend", "enter", "", "Send a message again that may not have arrived", "again"
        ),
        Action("queue.edit", "e", "", "Take a message back into the composer", "edit"),
        Action("queue.drop", "d,delete", "", "Drop a message that waits", "drop"),
        Action("queue.up", "K,shift+up", "", "Before the message above", "earlier"),
        Action("queue.down", "J,shift+down", "", "Behind the message below", "later"),
        Action("queue.above", "up,k", "", "The message above"),
        Action("queue.below", "down,j", "", "The message below"),
        Action("queue.back", "escape,tab", "write", "To the composer", "composer"),
        HELP,
    ),
    Where.COMPOSER: (
        Action("composer.send", "enter", "", "Send, or queue behind the running turn", "send"),
        Action(
            "composer.newline",
            "ctrl+j,alt+enter,shift+enter",
            "",
            "New line; so does \\ before the key that sends",
            "line",
        ),
        Action("composer.plan", "ctrl+t", "", "Plan mode on or off for the next message", "plan"),
        Action("composer.goal", "ctrl+l", "", "Goal mode on or off for the next message"),
        Action("composer.interrupt", "ctrl+x", "interrupt", "Stop the running turn", "interrupt"),
        Action("composer.commands", "/", "", "At the start: commands of the agent", fixed=True),
        Action("composer.files", "@", "", "Names a file of the repositories", fixed=True),
        Action("composer.history", "up and down", "", "At the edges: older messages", fixed=True),
        Action("composer.transcript", "tab", "to_transcript", "To the transcript", "transcript"),
        Action("composer.queue", "shift+tab", "to_queue", "To the waiting messages"),
        Action("composer.list", "escape", "to_list", "To the list; the draft stays", "list"),
    ),
    Where.WRITING: _WRITING,
    Where.SECRET: (
        Action("secret.give", "enter", "", "Give the answer; it is kept nowhere", "answer"),
        Action("secret.transcript", "tab", "to_transcript", "To the transcript", "transcript"),
        Action("secret.list", "escape", "to_list", "To the list", "list"),
    ),
    Where.CHATS: _CHATS,
}
