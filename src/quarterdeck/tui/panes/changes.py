"""The changes of a replica: its differences, and comments on their lines.

the store reports a change of the replica -> Review.due -> read -> ChangesView
c -> ReviewField -> Review.write (disk) -> shown at the line
S -> ReviewField (text around them) -> Review.send -> outbox -> chat
C, U, R -> Review.commit, Review.update -> the replica's repository
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast
from uuid import UUID

from textual import on, work
from textual.app import App, ComposeResult
from textual.widget import Widget
from textual.widgets import Static

from quarterdeck.client.errors import ClientError, ConflictError, ResponseError
from quarterdeck.store.app_state import AppState
from quarterdeck.store.changes_comments import Comment
from quarterdeck.store.review import READABLE, MergeConflict, Strategy
from quarterdeck.transcript.text import clean, one_line
from quarterdeck.tui.actions import KeyContext, keyed
from quarterdeck.tui.changes.model import (
    ItemKind,
    against_words,
    clash_words,
    comments_words,
    red_words,
    resting_words,
    state_words,
)
from quarterdeck.tui.changes.view import ChangesView, ReviewField
from quarterdeck.tui.clipboard import copy_text
from quarterdeck.tui.outside import OutsideError, editor, look_at, pager
from quarterdeck.tui.panes.tabs import TabPane
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.git import Against

KEEP_DELAY = 0.5
"""Seconds after the last key until a comment being written is saved to disk."""


RESTORED = (
    "The changes are restored after the update. Where they conflict with it, the files get conflict"
    " markers, and the changes stay in the stash, too."
)
NOT_IN_PLACE = "The files are not loaded. {replica.wake} wakes the replica; then retry."


class ChangesPane(TabPane):
    """Reads the changes when they are shown and may have changed; shows and accepts comments."""

    DEFAULT_CSS = """
    ChangesPane {
        & ChangesView { height: 1fr; }
        & #changes-message { height: auto; max-height: 3; padding: 0 1; color: $text-warning; display: none; }
        & #changes-line { height: 1; padding: 0 1; color: $text-muted; }
    }
    """

    def __init__(self, app_state: AppState, replica_id: UUID) -> None:
        super().__init__(app_state, replica_id)
        self.review = app_state.reviews.of(replica_id)
        self._editing: Comment | None = None
        self._before = ("", False)
        self._typed = ""
        self._notice = ""
        self._sending = False
        self._git_runs = ""
        """Which git operation runs in the replica."""
        self._clash: MergeConflict | None = None
        self._committing = ""
        """The repository that the message in the field is for."""
        self._searching = ""
        self._shown_at: object = None

    def compose(self) -> ComposeResult:
        yield Static(id="changes-message", markup=False)
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
    def place(self) -> KeyContext:
        """Part of `HasKeyContext`."""
        return KeyContext.CHANGES

    @property
    def keys_target(self) -> Widget:
        """Part of `TabPane`."""
        return self.field if self.field.display else self.view

    # display

    def on_mount(self) -> None:
        self._show_changes()
        self.show_state()

    def on_unmount(self) -> None:
        # A comment being written is saved shortly after its last key, except during that delay.
        if self._editing is not None and self._editing.text != self._typed:
            self._write(self._editing, self._typed, unfinished=True)

    def show_state(self) -> None:
        """Show the replica's state and read its files again where they may have changed."""
        if not self.is_mounted:
            return
        if self.review.due:
            self._read()
        if (clash := self.review.clash) != self._clash:
            self._clash = clash
            self._notice = "" if clash is not None else self._notice
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
        if self._notice and self._searching:
            self._search(self._searching)  # what was not found may have been read since
        self._show_words()

    def _show_words(self) -> None:
        state = self.review.state
        if state is None:
            return
        clash = self.review.clash
        words = self._notice or self._git_runs or (clash_words(clash) if clash else "")
        words = words or state_words(self.review, state, online=self._app_state.online)
        line = self.query_one("#changes-message", Static)
        line.display = bool(words)
        line.update(words)
        empty = "" if self.review.repositories else resting_words(state)
        self.view.empty = empty or ("No repository is in it." if self.review.read_at else "")
        self.query_one("#changes-line", Static).update(self._line())

    def _line(self) -> str:
        parts = [
            against_words(self.review),
            red_words(self.review.state),
            comments_words(self.review.comments),
        ]
        at, count = self.view.place_of_match
        if self._searching:
            found = f"{at}/{count}" if at else f"{count} found"
            parts.append(f"/{one_line(self._searching)} {found if count else 'not found'}")
        if self.view.marking:
            parts.append(
                keyed("selecting lines: {changes.comment} comment · {changes.back} cancel")
            )
        elif self.view.split:
            parts.append("side by side")
        return " \u00b7 ".join(part for part in parts if part)

    def say(self, words: str) -> None:
        """Show a line above the changes, until the next user action."""
        self._notice = one_line(words)
        self._show_words()

    @on(ChangesView.Moved)
    def _moved(self, event: ChangesView.Moved) -> None:
        event.stop()
        if event.acted:
            self._notice = ""
        self._show_words()

    # comments

    def action_act(self) -> None:
        item = self.view.item
        if item is None:
            return
        if item.kind == ItemKind.FILE:
            self.view.fold()
        elif item.kind == ItemKind.HUNK:
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
        self.field.open("comment", title, comment.text, keyed("{comment.keep} save"))

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
            self._notice = (
                f"The comment could not be saved: {error.strerror}. Free some disk space."
            )

    @on(ReviewField.Done)
    def _done(self, event: ReviewField.Done) -> None:
        event.stop()
        self._notice = ""
        match event.purpose:
            case "comment":
                self._finish(event.text, left=event.left)
            case "commit":
                self._leave_field()
                if not event.left:
                    self._commit(self._committing, event.text.strip())
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
        # Escape with an unchanged text changes nothing.
        open_ended = unfinished if text == before else True
        self._write(comment, text.strip("\n"), unfinished=open_ended if left else False)
        self.view.unmark()
        self._show_changes()

    def _leave_field(self) -> None:
        self.field.close()
        self.screen.set_focus(self.view)

    def action_drop(self) -> None:
        comment = self.view.comment
        if comment is None:
            self.say("The cursor is on no comment.")
            return
        try:
            self.review.drop(comment)
        except OSError as error:
            self._notice = f"It may be restored: {error.strerror}. Free some disk space."
        self._show_changes()

    # sending

    def action_send(self) -> None:
        count = len(self.review.finished)
        if not count:
            self.say(keyed("No comments to send. {changes.act} on a line writes one."))
        elif not self._sending:
            them = "1 comment" if count == 1 else f"{count} comments"
            note = keyed("optional · {summary.send} send")
            title = f"Summary for the {them}{self._to_chat()}"
            self.field.open("summary", title, self.review.summary, note)

    def _to_chat(self) -> str:
        """Return the name of the chat, where there are several."""
        state, chat = self.review.state, self.review.chat
        if state is None or chat is None or len(state.chats) < 2:
            return ""
        return (
            f" to {one_line(chat.record.title or self._app_state.agent_name(chat.record.provider))}"
        )

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

    # git

    def _repository(self) -> str:
        """Return the name of the repository under the cursor, or of the only one."""
        if self.view.section is not None:
            return self.view.section.repository.name
        state = self.review.state
        statuses = state.record.repository_statuses if state is not None else []
        return statuses[0].repository if len(statuses) == 1 else ""

    def action_against(self) -> None:
        uncommitted = self.review.against == Against.UNCOMMITTED
        self.review.show_against(Against.BASE if uncommitted else Against.UNCOMMITTED)
        self._notice = ""
        self._show_changes()
        self.show_state()

    def action_stage(self) -> None:
        section = self.view.section
        if self.review.against != Against.UNCOMMITTED:
            self.say(keyed("{changes.against} shows the uncommitted files, to mark them."))
        elif section is None or section.change is None:
            self.say("Put the cursor on a file.")
        else:
            on_head = self.view.item is not None and self.view.item.kind == ItemKind.FILE
            self.review.mark(*section.key)
            self._show_changes()
            if on_head:
                self.view.next_file(1)

    def action_commit(self) -> None:
        self._committing = self._repository()
        if self._cannot_change() or not self._committing:
            return
        marked = len([target for target in self.review.marked if target[0] == self._committing])
        what = f"{marked} marked {'file' if marked == 1 else 'files'}" if marked else "everything"
        title = f"Commit {what} in {one_line(self._committing)}"
        state = self.review.state
        message = state.newest_title if state is not None else ""
        self.field.open("commit", title, message, keyed("{commit.send} commit"))
        self.field.select_all()  # typing replaces what is proposed

    def _cannot_change(self) -> bool:
        """Return why git cannot change the replica's files now, or None."""
        state = self.review.state
        if self._git_runs:
            self.say(f"Still running: {self._git_runs}")
        elif state is not None and state.status not in READABLE:
            self.say(keyed(NOT_IN_PLACE))
        else:
            return False
        return True

    def _commit(self, repository: str, message: str) -> None:
        async def commit() -> str:
            done = await self.review.commit(repository, message)
            return f"Committed {done.commit.sha[:10]} {done.commit.title}"

        self._run_git("Committing …", commit)

    def action_update(self, strategy: Strategy) -> None:
        repository = self._repository()
        if self._cannot_change() or not repository:
            return

        base = self.review.base_of(repository)

        async def update() -> str:
            try:
                done = await self.review.update(repository, strategy)
            except ConflictError as error:
                if error.code != ErrorCode.UNCOMMITTED_CHANGES or not await self._may_stash(error):
                    raise
                done = await self.review.update(repository, strategy, stash=True)
            if done.conflicts:
                files = tuple(done.conflicts)
                return clash_words(MergeConflict(repository, base, "stash", files, started=True))
            return f"Updated to {done.head[:10]}" if done.changed else "Already up to date"

        verb = "Merging" if strategy == "merge" else "Rebasing onto"
        self._run_git(f"{verb} {one_line(base)} …", update)

    async def _may_stash(self, refused: ConflictError) -> bool:
        """Ask whether uncommitted changes may be stashed for an update that was refused."""
        from quarterdeck.tui.kit.dialogs import ConfirmScreen

        reason = f"{refused} {refused.details or ''}".strip()
        words = f"{clean(reason)}\n\n{RESTORED}"
        asked = ConfirmScreen("Stash the uncommitted changes and try again?", words, "Stash")
        return bool(await self.app.push_screen_wait(asked))

    @work(group="git")
    async def _run_git(self, words: str, operation: Callable[[], Awaitable[str]]) -> None:
        self._git_runs, self._notice = words, ""
        self._show_words()
        try:
            result = await operation()
        except ResponseError as error:
            # Conflicts of an update are named until something is done about them.
            named = bool(error.conflicts) and not (self.review.clash and self.review.clash.started)
            result = "" if named else f"{error} {error.details or error.next_step}"
        except ClientError as error:
            result = f"{error} {error.next_step}"
        finally:
            self._git_runs = ""
        self.say(result)
        self.show_state()

    def action_resolve(self) -> None:
        clash = self.review.clash
        if clash is None:
            self.say("No conflicts.")
        else:
            self._ask_to_resolve(clash)

    @work(group="send")
    async def _ask_to_resolve(self, clash: MergeConflict) -> None:
        try:
            sent = await self.review.ask_to_resolve(clash)
        except ClientError as error:
            self.say(f"Not sent: {error} {error.next_step}")
        except OSError as error:
            self.say(f"Not sent: {error.strerror}. Free some disk space.")
        else:
            message = keyed("Asked the agent to resolve the conflicts (chat: {tab.chat}).")
            self.say(message if sent else "The replica has no chat. Open one first.")

    async def action_push(self) -> None:
        await self.screen.run_action(f"get_changes('push', {self._repository()!r})")

    # searching, moving, reading

    def action_search(self) -> None:
        note = keyed("{search.go} first match")
        self.field.open("search", "Search lines and paths", "", note)

    def _search(self, wanted: str) -> None:
        self._searching = wanted
        self._notice = ""
        if not self.view.search(wanted) and wanted:
            self._notice = f"No match for {one_line(wanted)}"
        self._show_words()

    def action_match(self, step: int) -> None:
        if self._searching:
            self.view.next_match(step)
        else:
            self.say(
                keyed(
                    "{changes.search} search · {changes.match} next · {changes.match-back} previous"
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
            self.say("Terminal too narrow for split view.")
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
        state = self.review.state
        self.review.forget_reading()
        if self.review.due:
            self._read()
        elif state is not None and state.status not in READABLE:
            self.say(keyed(NOT_IN_PLACE))

    def action_back(self) -> None:
        if self.view.unmark():
            return
        if self.review.dismiss_clash():
            self._show_words()
            return
        if self._searching:
            self._search("")
            return
        self.post_message(self.Left("list"))
