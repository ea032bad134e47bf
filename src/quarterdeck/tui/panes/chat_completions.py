"""What the composer completes: files, commands of the agent, and those of the cockpit itself."""

import re
from typing import NamedTuple

from quarterdeck.client.errors import ClientError
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.panes.chat_messages import ShownChat
from quarterdeck.tui.widgets.completions import Completion, Token
from quarterdeck.wire.chats import SlashCommand


class OwnCommand(NamedTuple):
    """A command that the cockpit carries out: an action of the chat's pane."""

    action: str
    description: str


COMMANDS = {
    "/copy": OwnCommand("copy_message", "Copy the agent's last message"),
    "/export": OwnCommand("export", "Write the chat to a file"),
    "/mode": OwnCommand("pick_setting('permission_mode')", "Choose the permission mode"),
    "/model": OwnCommand("pick_model", "Choose the model"),
    "/new": OwnCommand("new_chat", "Start another chat"),
}
"""By what is typed. An agent's command of the same name comes first."""


async def own_command(shown: ShownChat, text: str) -> OwnCommand | None:
    """Return the command that a text is; None for a message, and for a command of the agent."""
    command = COMMANDS.get(text.strip())
    if command is None:
        return None
    try:
        known = await shown.app_state.chat_commands.slash_commands(shown.replica_id, shown.id)
    except ClientError:
        return command  # it is not needed for ours
    return None if any(one.command == text.strip() for one in known) else command


_COMMAND = re.compile(r"(/[A-Za-z][\w:-]*)(?:\s|$)")


def unknown_command(shown: ShownChat, text: str) -> str:
    """Return the command that a text begins with, if neither the agent nor the cockpit has it; else nothing.

    Nothing, too, until the commands of the chat were offered for completion, and before its first message:
    some agents report theirs with the first turn.
    """
    chat = shown.state
    if chat is None or chat.transcript is None or not chat.transcript.blocks:
        return ""
    known = shown.known_commands.get(shown.id)
    found = _COMMAND.match(text)
    is_known = known is None or found is None or found[1] in known or found[1] in COMMANDS
    return "" if is_known or found is None else found[1]


async def agent_commands(shown: ShownChat) -> list[Completion]:
    """Return the commands that the agent of the chat has.

    Raises:
        ClientError: they cannot be read.
    """
    chat_id = shown.id
    known = await shown.app_state.chat_commands.slash_commands(shown.replica_id, chat_id)
    shown.known_commands[chat_id] = frozenset(command.command for command in known)
    return [_completion(command) for command in known]


async def find_completions(shown: ShownChat, token: Token) -> list[Completion]:
    """Return the completions of the word at the cursor.

    Raises:
        ClientError: commands or files cannot be read.
    """
    if token.kind == "command":
        offered = await agent_commands(shown)
        names = {command.insert for command in offered}
        offered += [
            Completion(name, own.description, is_message=True)
            for name, own in COMMANDS.items()
            if name not in names
        ]
        query = token.query.lower()
        return [one for one in offered if one.insert.lstrip("/").lower().startswith(query)]
    files = await shown.app_state.chat_commands.find_files(shown.replica_id, token.query)
    return [
        Completion(f"@{one_line(file.display_path)}", file.status)
        for file in files
        # A name with spaces could not be distinguished from the words after it.
        if not any(character.isspace() for character in file.display_path)
    ]


def _completion(command: SlashCommand) -> Completion:
    """Return a command, its arguments, and its description."""
    hint = f"<{one_line(command.argument_hint)}> " if command.argument_hint else ""
    detail = f"{hint}{one_line(command.description)}"
    return Completion(one_line(command.command), detail, is_message=not hint)
