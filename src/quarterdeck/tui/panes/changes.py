"""The changes of a replica: its differences, and comments on their lines.

the store tells of the replica -> Review.due -> read -> ChangesView
c -> ReviewField -> Review.write (disk) -> shown at the line
S -> ReviewField (words around them) -> Review.send -> outbox -> chat
"""

import asyncio
from typing import Any, cast
from uuid import UUID

from textual import on, work
from textual.app import App, ComposeResult
from textual.widget import Widget
from textual.widgets import Static

from quarterdeck.client.errors import ClientError
from quarterdeck.store.changes_comments import Comment
from quarterdeck.store.deck import Deck
from quarterdeck.tui.actions import Where
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.changes.fields import ReviewField
from quarterdeck.tui.changes.model import Kind
from quarterdeck.tui.changes.view import ChangesView
from quarterdeck.tui.changes.words import comments_words, resting_words, state_words
from quarterdeck.tui.copying import copy_text
from quarterdeck.tui.outside.copies import look_at
from quarterdeck.tui.outside.programs import OutsideError, editor, pager
from quarterdeck.tui.panes.tabs import TabPane
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import hold_keys, release_keys

KEEP_DELAY = 0.5
"""Seconds after the last key until a comment that is being written is on disk."""


class ChangesPane(TabPane):
    """Reads the changes when they are looked at and may be others; shows and takes comments."""

    DEFAULT_CSS = """
    ChangesPane {
        & ChangesView { height: 1fr; }
        & #changes-said { height: auto; max-height: 3; padding: 0 1; color: $text-warning; display: none; }
        & #changes-line { height: 1; padding: 0 1; color: $text-muted; }
    }
    """

    def __init__(self, deck: Deck, replica_id: UUID) -> None:
        super().__init__(deck, replica_id)
        self.review = deck.reviews.of(replica_id)
        self._editing: Comment | None = None
        self._before = ("", False)
        self._typed = ""
        self._said = ""
        self._sending = False
        self._searching = ""
        self._shown_at: object = None

    def compose(self) -> ComposeResult:
        yield Static(id="changes-said", markup=False)
        yield ChangesView()
        yield ReviewField()
        yield Static(id="changes-line", markup=False)

    @property
    def view(self) -> ChangesView:
        return self.query_one(ChangesView)

    @property
    def field(self) -> ReviewField:
        return self.query_one(ReviewField)

    @property
    def place(self) -> Where:
        """Part of `Placed`."""
        return Where.CHANGES

    @property
    def keys_target(self) -> Widget:
        """Part of `TabPane`."""
        return self.field if self.field.display else self.view

    # what is shown

    def on_mount(self) -> None:
        self._show_changes()
        self.show_state()

    def on_unmount(self) -> None:
        # What is being written is on disk since a moment after its last key, but for that moment.
        if self._editing is not None and self._editing.text != self._typed:
            self._write(self._editing, self._typed, unfinished=True)

    def show_state(self) -> None:
        """The replica changed: so may have its files."""
        if not self.is_mounted:
            return
        if self.review.due:
            self._read()
        self._show_words()

    def shown(self) -> None:
        """Part of `TabPane`."""
        self.show_state()

    def come_online(self) -> None:
        """Part of `TabPane`."""
        if self.review.problem:
            self.review.forget_reading()
        if self.display:
            self.show_state()

    @work(group="read")
    async def _read(self) -> None:
        # One at a time: `due` is false while another one reads.
        while self.review.due and self.display:
            await self.review.read()
        self._show_changes()

    def _show_changes(self) -> None:
        self.view.show(self.review)
        self._show_words()

    def _show_words(self) -> None:
        state = self.review.state
        if state is None:
            return
        words = self._said or state_words(self.review, state, online=self._deck.online)
        said = self.query_one("#changes-said", Static)
        said.display = bool(words)
        said.update(words)
        empty = "" if self.review.repositories else resting_words(state)
        self.view.empty = empty or ("No repository is in it." if self.review.read_at else "")
        self.query_one("#changes-line", Static).update(self._line())

    def _line(self) -> str:
        parts = [comments_words(self.review.comments)]
        at, count = self.view.place_of_match
        if self._searching:
            found = f"{at}/{count}" if at else f"{count} found"
            parts.append(f"/{one_line(self._searching)} {found if count else 'not found'}")
        if self.view.marking:
            parts.append(
                keyed("choosing lines: {changes.comment} comments on them, {changes.back} ends it")
            )
        elif self.view.split:
            parts.append("side by side")
        return " \u00b7 ".join(part for part in parts if part)

    def say(self, words: str) -> None:
        """Over the changes, until the person does the next thing."""
        self._said = one_line(words)
        self._show_words()

    @on(ChangesView.Moved)
    def _moved(self, event: ChangesView.Moved) -> None:
        event.stop()
        if event.acted:
            self._said = ""
        self._show_words()

    # comments

    def action_act(self) -> None:
        item = self.view.item
        if item is None:
            return
        if item.kind == Kind.FILE:
            self.view.fold()
        elif item.kind == Kind.HUNK:
            self.view.fold_hunk()
        elif item.comment is not None:
            self._edit(item.comment)
        else:
            self.action_comment()

    def action_comment(self) -> None:
        lines = self.view.chosen_lines()
        if self.view.comment is not None:
            self._edit(self.view.comment)
        elif lines is None:
            self.say("Put the cursor on a line or the head of a file to comment on it.")
        else:
            self._edit(self.review.begin(lines))

    def _edit(self, comment: Comment) -> None:
        if self._sending:
            self.say("The comments are being sent.")
            return
        self._editing = comment
        self._before = (comment.text, comment.unfinished)
        self._typed = comment.text
        title = f"Comment on {one_line(comment.path)} {comment.where}"
        self.field.open("comment", title, comment.text, keyed("{comment.keep} keeps it"))
        release_keys(self)

    @on(ReviewField.Changed)
    def _typing(self) -> None:
        if self._editing is not None and self.field.purpose == "comment" and self.field.display:
            self._typed = self.field.text
            self._keep_soon(self._editing, self._typed)

    @work(group="keep", exclusive=True)
    async def _keep_soon(self, comment: Comment, text: str) -> None:
        if comment.text != text:
            await asyncio.sleep(KEEP_DELAY)
            self._write(comment, text, unfinished=True)

    def _write(self, comment: Comment, text: str, *, unfinished: bool) -> None:
        try:
            self.review.write(comment, text, unfinished=unfinished)
        except OSError as error:
            self._said = f"The comment is not kept on disk: {error.strerror}. Free some disk space."

    @on(ReviewField.Done)
    def _done(self, event: ReviewField.Done) -> None:
        event.stop()
        self._said = ""
        match event.purpose:
            case "comment":
                self._finish(event.text, left=event.left)
            case "summary":
                self._leave_field()
                if not event.left:
                    self._send(event.text)
            case _:
                self._leave_field()
                self._search("" if event.left else event.text)

    def _finish(self, text: str, *, left: bool) -> None:
        comment, self._editing = self._editing, None
        self.workers.cancel_group(self, "keep")
        self._leave_field()
        if comment is None:
            return
        before, unfinished = self._before
        # Escape without another word changes nothing.
        open_ended = unfinished if text == before else True
        self._write(comment, text.strip("\n"), unfinished=open_ended if left else False)
        self.view.unmark()
        self._show_changes()

    def _leave_field(self) -> None:
        self.field.close()
        self.screen.set_focus(self.view)
        release_keys(self)

    def action_drop(self) -> None:
        comment = self.view.comment
        if comment is None:
            self.say("The cursor is on no comment.")
            return
        try:
            self.review.drop(comment)
        except OSError as error:
            self._said = f"It may come back: {error.strerror}. Free some disk space."
        self._show_changes()

    # sending

    def action_send(self) -> None:
        count = len(self.review.finished)
        if not count:
            self.say(keyed("There are no comments to send: {changes.act} on a line writes one."))
        elif not self._sending:
            them = "1 comment" if count == 1 else f"{count} comments"
            note = keyed("{summary.send} sends, empty is fine")
            title = f"Words before the {them}{self._to_chat()}"
            self.field.open("summary", title, self.review.summary, note)

    def _to_chat(self) -> str:
        """Which chat, where there are several."""
        state, chat = self.review.state, self.review.chat
        if state is None or chat is None or len(state.chats) < 2:
            return ""
        return f" to {one_line(chat.record.title or chat.record.provider)}"

    @work(group="send")
    async def _send(self, summary: str) -> None:
        self._sending = True
        self.review.summary = summary
        try:
            count = await self.review.send(summary)
        except ClientError as error:
            self.say(f"Not sent, the comments are still here: {error} {error.next_step}")
        except OSError as error:
            self.say(f"Not sent: {error.strerror}. Free some disk space.")
        else:
            self.review.summary = ""
            self._show_changes()
            them = "The comment is" if count == 1 else f"{count} comments are"
            self.say(them + keyed(" in the chat ({tab.chat}), in one message."))
        finally:
            self._sending = False

    # searching, moving, looking

    def action_search(self) -> None:
        note = keyed("{search.go} goes to the first place")
        self.field.open("search", "Search in lines and paths", "", note)

    def _search(self, wanted: str) -> None:
        self._searching = wanted
        self._said = ""
        if not self.view.search(wanted) and wanted:
            self._said = f"Nowhere in these changes: {one_line(wanted)}"
        self._show_words()

    def action_match(self, step: int) -> None:
        if self._searching:
            self.view.next_match(step)
        else:
            self.say(
                keyed(
                    "{changes.search} searches; {changes.match} and {changes.match-back} go on from there."
                )
            )

    def action_move(self, steps: int) -> None:
        self.view.move(steps)

    def action_page(self, direction: int) -> None:
        self.view.page(direction)

    def action_edge(self, end: bool) -> None:
        self.view.edge(end)

    def action_hunk(self, step: int) -> None:
        self.view.next_hunk(step)

    def action_file(self, step: int) -> None:
        self.view.next_file(step)

    def action_next_comment(self, step: int) -> None:
        self.view.next_comment(step)

    def action_mark(self) -> None:
        self.view.mark()

    def action_fold(self) -> None:
        self.view.fold()

    def action_fold_all(self) -> None:
        self.view.fold_all()

    def action_split(self) -> None:
        if not self.view.show_split(not self.view.wants_split) and self.view.wants_split:
            self.say("Too narrow for both sides: they stand side by side in a wider window.")
        else:
            self._show_words()

    def action_copy(self, whole: bool) -> None:
        if text := self.view.text_to_copy(whole=whole):
            copy_text(self, text)

    async def action_outside(self, program: str) -> None:
        text = self.view.text_to_copy(whole=True)
        name = self.view.section.key[1].rpartition("/")[2] if self.view.section else ""
        if not text:
            self.say("Put the cursor on a file.")
            return
        data, command = text.encode(errors="replace"), pager if program == "pager" else editor
        try:
            await look_at(cast("App[Any]", self.app), f"{name}.diff", data, command)
        except OutsideError as error:
            self.say(str(error))
        else:
            self.say("")

    def action_read(self) -> None:
        self.review.forget_reading()
        if self.review.due:
            self._read()
        elif not self.review.reading:
            self.say(keyed("Only an active replica can tell its changes; {replica.wake} wakes it."))

    def action_back(self) -> None:
        if self.view.unmark():
            return
        if self._searching:
            self._search("")
            return
        hold_keys(self)
        self.post_message(self.Left("list"))
