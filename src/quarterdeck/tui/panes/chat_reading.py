"""The transcript's side of a chat: older pages, answers, finding, copying."""

import asyncio

from textual import on, work

from quarterdeck.client.errors import ClientError
from quarterdeck.tui.copying import copy_text
from quarterdeck.tui.panes.chat_base import ChatBase
from quarterdeck.tui.transcript_view import TranscriptView
from quarterdeck.tui.widgets.find_line import FindLine

NOWHERE = "not found"


class Reading(ChatBase):
    """What the transcript asks for."""

    _found = False
    _older_taken: asyncio.Event
    """Set when a page that was read is a part of what is shown."""

    @on(TranscriptView.CopyWanted)
    def _copy_wanted(self, event: TranscriptView.CopyWanted) -> None:
        copy_text(self, event.text)

    @on(TranscriptView.OlderWanted)
    def _older_wanted(self) -> None:
        self._load_older()

    @work(group="older", exclusive=True)
    async def _load_older(self) -> None:
        await self._read_older()

    async def _read_older(self) -> bool:
        """One page more; False when there is none, or it cannot be read."""
        chat = self.chat
        before = chat.before_cursor if chat else None
        if chat is None or before is None:
            return False
        try:
            await self._deck.commands.load_older(self.replica_id, chat.id)
        except ClientError as error:
            self.refused("older messages", error)
            return False
        if chat is self.chat:
            self.transcript.has_older = chat.has_older
        return chat.before_cursor != before

    @on(TranscriptView.Answered)
    def _answered(self, event: TranscriptView.Answered) -> None:
        self._problem = ""
        self._choose(event.request_id, event.option_id)

    @work(group="respond")
    async def _choose(self, request_id: str, option_id: str) -> None:
        respond = self._deck.commands.respond
        try:
            await respond(self.replica_id, self.chat_id, request_id, option_id=option_id)
        except ClientError as error:
            self.trouble(f"{error} {error.next_step}")

    # finding

    @property
    def find_line(self) -> FindLine:
        return self.query_one(FindLine)

    def action_find(self) -> None:
        """Asks for words to find."""
        self.find_line.display = True
        self.screen.set_focus(self.find_line.field)

    @on(FindLine.Changed)
    def _find_changed(self, event: FindLine.Changed) -> None:
        self.workers.cancel_group(self, "find")
        self._found = self.transcript.find(event.words)
        if self._found or not event.words:
            self._say_found()
        else:
            self.find_line.say(NOWHERE)

    @on(FindLine.Left)
    def _find_left(self, event: FindLine.Left) -> None:
        self.screen.set_focus(self.transcript)
        if not event.keep:
            self.end_find()
        elif not self._found:
            self._find_older()

    def end_find(self) -> None:
        """Nothing is marked any more."""
        self.workers.cancel_group(self, "find")
        self.find_line.display = False
        self.find_line.field.clear()
        self.transcript.find("")

    def action_find_again(self, by: int) -> None:
        """The next place with the words, or the one before."""
        if not self.transcript.finding:
            self.action_find()
        elif self.transcript.find_again(by):
            self._say_found()
        elif by < 0 and self.transcript.has_older:
            self._find_older()
        else:
            self._go_round(by)

    def _go_round(self, by: int) -> None:
        if self.transcript.find_again(by, around=True):
            self._say_found("on from the start" if by > 0 else "on from the end")
        else:
            self.find_line.say(NOWHERE)

    def _say_found(self, more: str = "") -> None:
        """Which place is shown, of how many; a plus while older messages are not counted."""
        place = self.transcript.found
        plus = "+" if self.transcript.has_older else ""
        found = f"{place.number} of {place.total}{plus}" if place else ""
        self.find_line.say(" · ".join(part for part in (more, found) if part))

    async def _read_older_page(self) -> bool:
        self._older_taken.clear()
        if not await self._read_older():
            return False
        # The frame brings it to the reader; before that its lines are not counted.
        await self._older_taken.wait()
        return True

    @work(group="find", exclusive=True)
    async def _find_older(self) -> None:
        """Reads page after page until the words are there."""
        self.find_line.say("looking in older messages …")
        while await self._read_older_page():
            if self.transcript.find_again(-1):
                self._say_found()
                return
        if self.transcript.has_older:
            self.find_line.say("not found further up")
        else:
            self._go_round(-1)
