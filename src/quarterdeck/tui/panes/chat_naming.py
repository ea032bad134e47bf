"""Completion of what is named in a message: commands of the server, files of the repositories."""

from textual import on, work

from quarterdeck.client.errors import ClientError
from quarterdeck.transcript.clean import one_line
from quarterdeck.tui.panes.chat_base import ChatBase
from quarterdeck.tui.widgets.completions import Completion, Completions
from quarterdeck.tui.widgets.composer_tokens import Token
from quarterdeck.tui.widgets.naming_area import NamingArea
from quarterdeck.wire.chats import SlashCommand


class Naming(ChatBase):
    """Each key that changes the word asks anew, and calls off what was asked before."""

    @on(NamingArea.Naming)
    def _named(self, event: NamingArea.Naming) -> None:
        if event.token is None:
            self.workers.cancel_group(self, "naming")
            self.query_one(Completions).close()
        else:
            self._complete(event.token)

    @on(Completions.Clicked)
    def _clicked(self) -> None:
        self.composer.accept()
        self.screen.set_focus(self.composer)

    @work(group="naming", exclusive=True)
    async def _complete(self, token: Token) -> None:
        commands = self._deck.chat_commands
        try:
            if token.kind == "command":
                known = await commands.slash_commands(self.replica_id, self.chat_id)
                found = [completion_of(one) for one in known if _fits(one, token.query)]
            else:
                files = await commands.find_files(self.replica_id, token.query)
                found = [
                    Completion(f"@{one_line(one.display_path)}", one.status)
                    for one in files
                    # A name with blanks cannot be told from the words behind it.
                    if not any(character.isspace() for character in one.display_path)
                ]
        except ClientError as error:
            self.query_one(Completions).close()
            self.refused("nothing to complete", error)
            return
        if self.composer.token == token:
            self.query_one(Completions).offer(found)


def completion_of(command: SlashCommand) -> Completion:
    """A command, what it takes, and what it does."""
    hint = f"<{one_line(command.argument_hint)}> " if command.argument_hint else ""
    return Completion(one_line(command.command), f"{hint}{one_line(command.description)}")


def _fits(command: SlashCommand, query: str) -> bool:
    return command.command.lstrip("/").lower().startswith(query.lower())
