"""The changes of a replica as they were last read, and what a person says of them.

    repositories changed, a turn ended --> due --> read() --> repositories, files
    keep / drop / send --> comments --> disk --> outbox

Only an active replica can tell its changes, and nothing here wakes one: of one that rests, what was
read before is shown.
"""

import asyncio
from collections import OrderedDict
from datetime import datetime
from typing import TYPE_CHECKING, Protocol
from uuid import UUID, uuid4

from quarterdeck.client.errors import ClientError
from quarterdeck.store.changes_comments import Comment, CommentsOnDisk, Lines, find_lines, span_of
from quarterdeck.store.changes_message import message_of
from quarterdeck.store.changes_model import FileChange, RepositoryChange
from quarterdeck.store.changes_parse import parse_changes
from quarterdeck.store.chats import ChatState
from quarterdeck.store.disk import ClientDisk
from quarterdeck.store.outbox import Outbox
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.replicas import RepositoryStatus

if TYPE_CHECKING:
    from quarterdeck.client.client import Client

KEPT = 8
"""Replicas whose changes are kept in memory."""
LONG = 500_000
"""Characters; of a longer difference with fewer lines than were counted the rest was cut off."""


class ReviewOwner(Protocol):
    """What reviews need of the deck."""

    replicas: dict[UUID, ReplicaState]
    disk: ClientDisk
    outbox: Outbox

    @property
    def client(self) -> "Client": ...

    @property
    def online(self) -> bool: ...


class Reviews:
    """The reviews of an installation's replicas."""

    def __init__(self, owner: ReviewOwner) -> None:
        self._owner = owner
        self._kept: OrderedDict[UUID, Review] = OrderedDict()

    def of(self, replica_id: UUID) -> "Review":
        """The review of a replica."""
        review = self._kept.get(replica_id)
        if review is None:
            review = self._kept[replica_id] = Review(self._owner, replica_id)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(replica_id)
        return review


class Review:
    """One replica's."""

    def __init__(self, owner: ReviewOwner, replica_id: UUID) -> None:
        self._owner = owner
        self.replica_id = replica_id
        self.repositories: list[RepositoryChange] = []
        self.read_at: datetime | None = None
        self.problem = ""
        """Why the last reading failed."""
        self.reading = False
        self.summary = ""
        """Words around the comments that could not be sent."""
        self._disk = CommentsOnDisk(owner.disk, replica_id)
        self.comments = self._disk.read()
        self._read_for: object = None

    @property
    def state(self) -> ReplicaState | None:
        """The replica."""
        return self._owner.replicas.get(self.replica_id)

    @property
    def chat(self) -> ChatState | None:
        """Where comments are sent to: the chat that was looked at last, else the first."""
        state = self.state
        if state is None:
            return None
        shown = state.chats.get(state.shown_chat) if state.shown_chat else None
        return shown or state.first_chat

    @property
    def finished(self) -> list[Comment]:
        """Comments that can be sent."""
        return [comment for comment in self.comments if not comment.unfinished]

    # reading

    @property
    def due(self) -> bool:
        """Whether something may have changed since the last reading, and can be asked for."""
        state = self.state
        return (
            state is not None
            and state.active
            and state.detailed
            and self._owner.online
            and not self.reading
            and self._read_for != _marks(state)
        )

    def settle(self) -> None:
        """What is there is taken for what the replica has now."""
        if self.state is not None:
            self._read_for = _marks(self.state)

    def forget_reading(self) -> None:
        """The next look reads again, whatever has been read."""
        self._read_for = None

    async def read(self) -> None:
        """Reads the changes. What was there stays when they cannot be read."""
        state = self.state
        if state is None:
            return
        self.reading = True
        self._read_for = _marks(state)
        try:
            detail = await self._owner.client.replicas.get(state.id, include=("diffs",))
            found = await asyncio.to_thread(repositories_of, detail.repository_statuses)
        except ClientError as error:
            self.problem = f"{error} {error.next_step}"
        else:
            self.take(found)
        finally:
            self.reading = False

    def take(self, found: list[RepositoryChange]) -> None:
        """These are the changes now. What could not be told this time stays as it was."""
        self.problem = ""
        if any(one.files is None and one.added + one.removed for one in found):
            self.problem = "The replica could not tell its changes; r tries again."
            found = [self._as_before(one) for one in found]
        self.repositories = found
        self.read_at = utc_now()
        self._follow()

    def _as_before(self, fresh: RepositoryChange) -> RepositoryChange:
        known = next((one for one in self.repositories if one.name == fresh.name), None)
        return known if fresh.files is None and known is not None else fresh

    def file(self, comment: Comment) -> FileChange | None:
        """The file that a comment is about, as far as it is still changed."""
        for repository in self.repositories:
            if repository.name == comment.repository:
                return repository.file(comment.path)
        return None

    def _follow(self) -> None:
        """Comments go where their lines went."""
        for comment in self.comments:
            change = self.file(comment)
            lines = change.numbered() if change is not None else []
            found = find_lines(comment, lines)
            if found is not None:
                comment.start, comment.end = span_of(comment.side, lines[found.start : found.stop])

    def outdated(self, comment: Comment) -> bool:
        """Whether its lines, or its file, are no longer a part of the changes."""
        change = self.file(comment)
        if change is None or not comment.quoted:
            return change is None
        return find_lines(comment, change.numbered()) is None

    # comments

    def begin(self, lines: Lines) -> Comment:
        """A comment to be written; it is kept with its first `write`. A file as a whole has one."""
        for comment in self.comments:
            known = (comment.repository, comment.path) == (lines.repository, lines.path)
            if known and not comment.quoted and not lines.quoted:
                return comment
        return Comment(key=uuid4().hex, unfinished=True, created_at=utc_now(), **lines.model_dump())

    def write(self, comment: Comment, text: str, *, unfinished: bool) -> None:
        """Takes over what stands in a comment; an empty one is none.

        Raises:
            OSError: the disk does not take it. It is shown all the same.
        """
        comment.text, comment.unfinished = text, unfinished
        known = comment in self.comments
        if text.strip() and not known:
            self.comments.append(comment)
        elif not text.strip() and known:
            self.comments.remove(comment)
        elif not known:
            return
        self._disk.write(self.comments)

    def drop(self, comment: Comment) -> None:
        """A comment is not wanted any more.

        Raises:
            OSError: the disk does not take it.
        """
        self.write(comment, "", unfinished=False)

    async def send(self, summary: str) -> int:
        """Sends all finished comments as one message to the replica's chat; says how many.

        Raises:
            ClientError: the service refuses; the comments stay.
            OSError: the message cannot be kept on disk; the comments stay.
        """
        sent = self.finished
        chat = self.chat
        if chat is None or not (sent or summary.strip()):
            return 0
        outdated = {comment.key for comment in sent if self.outdated(comment)}
        text = message_of(sent, outdated, summary, several=len(self.repositories) > 1)
        await self._owner.outbox.send(self.replica_id, chat.id, text)
        self.comments = [comment for comment in self.comments if comment not in sent]
        self._disk.write(self.comments)
        return len(sent)


def _marks(state: ReplicaState) -> object:
    """What differs when the changes may differ."""
    numbers = [
        (one.repository, one.branch, str(one.git_diff)) for one in state.record.repository_statuses
    ]
    return (state.status, state.untracked, state.done_at, numbers)


def repositories_of(statuses: list[RepositoryStatus]) -> list[RepositoryChange]:
    """The changes that a replica's record tells."""
    return [_repository(one) for one in statuses]


def _repository(status: RepositoryStatus) -> RepositoryChange:
    told = status.git_diff or {}
    change = RepositoryChange(
        status.repository, status.branch, int(told.get("added") or 0), int(told.get("removed") or 0)
    )
    text = told.get("full_diff")
    if not isinstance(text, str):
        return change
    # Half characters, which JSON may hold, could not be kept on disk.
    change.files = files = parse_changes(text.encode(errors="replace").decode())
    added, removed = sum(one.added for one in files), sum(one.removed for one in files)
    ends_early = bool(files and files[-1].hunks and files[-1].hunks[-1].cut)
    told = change.added + change.removed
    change.cut = ends_early or (len(text) > LONG and added + removed < told)
    if not change.cut:
        # The numbers were told before the text, and may be older.
        change.added, change.removed = added, removed
    return change
