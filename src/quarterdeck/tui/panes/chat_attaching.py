"""Files that go with a message, and the message in the person's own editor."""

from typing import Any, cast

from textual import work
from textual.app import App
from textual.widgets import Static

from quarterdeck.tui.attachments import Attachment, FileRead, ask_for_file, attached_words
from quarterdeck.tui.outside.copies import edit, look_at
from quarterdeck.tui.outside.programs import OutsideError, pager
from quarterdeck.tui.panes.chat_base import ChatBase
from quarterdeck.tui.text import one_line


class Attaching(ChatBase):
    """An image goes in the message itself, any other file on the canvas."""

    def show_attachments(self) -> None:
        """Names what goes with the next message."""
        line = self.query_one("#attached", Static)
        line.display = bool(self.attachments)
        self.composer.sends_empty = any(one.upload_id for one in self.attachments)
        line.update(attached_words("next", self.attachments))

    def attach_upload(self, name: str, upload_id: str) -> None:
        """An upload that waits goes with the next message, once."""
        if all(one.upload_id != upload_id for one in self.attachments):
            self.attachments.append(Attachment(name, upload_id=upload_id))
        self.show_attachments()

    def action_detach(self) -> None:
        """Nothing goes with the next message any more."""
        self.attachments = []
        self.show_attachments()

    @work(exclusive=True, group="attach")
    async def action_attach(self) -> None:
        """Asks for a file, and takes it along."""
        await ask_for_file(self, "Attach a file", self._take_file)

    async def _take_file(self, file: FileRead) -> None:
        if file.image is not None:
            self.attachments.append(Attachment(file.path.name, image=file.image))
        else:
            upload = await self._deck.chat_commands.upload(self.replica_id, file.path, file.content)
            if upload.upload_id is not None:
                # The message names it, and so the agent is told of it.
                self.attachments.append(Attachment(file.path.name, upload_id=upload.upload_id))
            else:
                self.composer.insert_word(one_line(upload.file_path))
        self.show_attachments()

    async def action_open_paste(self) -> None:
        """The folded paste at the cursor in `$PAGER`."""
        text = self.composer.paste_at_cursor
        if text is None:
            self.trouble("Put the cursor on a paste to read it.")
            return
        try:
            data = text.encode(errors="replace")
            await look_at(cast("App[Any]", self.app), "paste.txt", data, pager)
        except OutsideError as error:
            self.trouble(str(error))

    async def action_editor(self) -> None:
        """The message in `$EDITOR`."""
        app, before = cast("App[Any]", self.app), self.composer.written
        # Editors want a newline at a file's end, and put one there.
        whole = f"{before}\n" if before else ""
        try:
            text = (await edit(app, "message.md", whole, "replace")).removesuffix("\n")
        except OutsideError as error:
            self.trouble(str(error))
            return
        self._problem = ""
        # A message that was refused meanwhile stands before it.
        now = self.composer.written
        refused = now.removesuffix(before) if now != before else ""
        self.composer.text = refused + text
        self.composer.move_cursor(self.composer.document.end)
        self.show_state()
