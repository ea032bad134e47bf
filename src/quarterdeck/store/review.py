"""The changes of a replica as last read, and the person's comments on them.

    repositories changed, a turn ended --> due --> read() --> repositories, files
    keep / drop / send --> comments --> disk --> outbox

Changes are those since the base branch, or the uncommitted ones. Those of a sleeping replica are read
without waking it; for an archived one the changes read before are shown.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal
from uuid import UUID, uuid4

from quarterdeck.client.errors import ClientError, ConflictError
from quarterdeck.store.changes_comments import (
    Comment,
    CommentsOnDisk,
    Lines,
    find_lines,
    message_of,
    resolve_message,
    span_of,
)
from quarterdeck.store.changes_diff import (
    ChangeKind,
    DiffSide,
    FileChange,
    RepositoryChange,
    parse_changes,
)
from quarterdeck.store.chats import ChatState
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.git import Against, Committed, Updated
from quarterdeck.wire.git_state import RepositoryStatus
from quarterdeck.wire.replicas import WorkspaceStatus

if TYPE_CHECKING:
    from quarterdeck.store.app_state import AppState


KEPT = 8
"""Replicas whose changes are kept in memory."""
LONG = 500_000
"""Characters; a longer diff with fewer lines than counted was cut off."""
MOST_BYTES = 4_000_000
"""Size limit of a patch of one repository."""
READABLE = {WorkspaceStatus.ACTIVE, WorkspaceStatus.SLEEPING, WorkspaceStatus.ERROR}
"""States in which the files of a replica exist."""
Strategy = Literal["merge", "rebase"]


async def read_patch(
    patch: AbstractAsyncContextManager[AsyncGenerator[bytes]],
) -> tuple[list[FileChange], bool]:
    """Return the files that a patch changes, and whether it was too long to be read to its end.

    Raises:
        ClientError: refused or unreachable.
    """
    text = bytearray()
    async with patch as parts:
        async for part in parts:
            text += part
            if len(text) > MOST_BYTES:
                break
    shown = bytes(text[:MOST_BYTES]).decode(errors="replace")
    return await asyncio.to_thread(parse_changes, shown), len(text) > MOST_BYTES


@dataclass(frozen=True)
class MergeConflict:
    """Files that the base branch and the replica's branch have changed in different ways.

    `strategy` is `merge`, `rebase`, or `stash`: changes that were stashed for an update.
    """

    repository: str
    base: str
    strategy: str
    files: tuple[str, ...]
    started: bool = False
    """Whether the merge or rebase waits in the replica; otherwise it was undone."""


class Reviews:
    """The reviews of an installation's replicas."""

    def __init__(self, owner: "AppState") -> None:
        self._owner = owner
        self._kept: OrderedDict[UUID, Review] = OrderedDict()

    def of(self, replica_id: UUID) -> "Review":
        """Return the review of a replica."""
        review = self._kept.get(replica_id)
        if review is None:
            review = self._kept[replica_id] = Review(self._owner, replica_id)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(replica_id)
        return review


class Review:
    """The review of one replica."""

    def __init__(self, owner: "AppState", replica_id: UUID) -> None:
        self._owner = owner
        self.replica_id = replica_id
        self.against = Against.BASE
        self.repositories: list[RepositoryChange] = []
        """The shown changes: since the base branch, or uncommitted."""
        self._other: list[RepositoryChange] = []
        self.marked: set[tuple[str, str]] = set()
        """Files for the next commit, by repository and path."""
        self._refused: MergeConflict | None = None
        self._stashed: set[str] = set()
        """Repositories in which stashed changes conflicted with the last update."""
        self.read_at: datetime | None = None
        self.problem = ""
        """Why the last read failed."""
        self.reading = False
        self.summary = ""
        """The summary of a message that could not be sent."""
        self._disk = CommentsOnDisk(owner.disk, replica_id)
        self.comments = self._disk.read()
        self._read_for: object = None

    @property
    def state(self) -> ReplicaState | None:
        """The replica."""
        return self._owner.replicas.get(self.replica_id)

    @property
    def chat(self) -> ChatState | None:
        """The chat that comments are sent to: the one shown last, else the first."""
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
        """Whether something may have changed since the last read, and can be read now."""
        state = self.state
        return (
            state is not None
            and state.status in READABLE
            and state.detailed
            and self._owner.online
            and not self.reading
            and self._read_for != (self.against, _marks(state))
        )

    def settle(self) -> None:
        """Treat the shown changes as current."""
        if self.state is not None:
            self._read_for = (self.against, _marks(self.state))

    def forget_reading(self) -> None:
        """Make the next check read again."""
        self._read_for = None

    async def read(self) -> None:
        """Read the changes. When they cannot be read, the old ones stay."""
        state = self.state
        if state is None:
            return
        self.reading = True
        against = self.against
        self._read_for = (against, _marks(state))
        try:
            if against == Against.UNCOMMITTED or not state.active:
                changes = await self._patches(state, against)
            else:
                detail = await self._owner.client.replicas.get(state.id, include=("diffs",))
                changes = await asyncio.to_thread(repositories_of, detail.repository_statuses)
        except ClientError as error:
            self.problem = f"{error} {error.next_step}"
        else:
            if against == self.against:
                self.take(changes)
        finally:
            self.reading = False

    async def _patches(self, state: ReplicaState, against: Against) -> list[RepositoryChange]:
        changes: list[RepositoryChange] = []
        for status in state.record.repository_statuses:
            name = status.repository
            patch = self._owner.client.git.diff(state.id, name, against=against)
            files, cut = await read_patch(patch)
            added, removed = sum(f.added for f in files), sum(f.removed for f in files)
            changes.append(RepositoryChange(name, status.branch, added, removed, files, cut))
        return changes

    def show_against(self, against: Against) -> None:
        """Show the changes against the base branch, or the uncommitted ones."""
        if against != self.against:
            self.against = against
            self.repositories, self._other = self._other, self.repositories
            self._read_for = None

    def take(self, changes: list[RepositoryChange]) -> None:
        """Apply the changes that were read. Repositories whose diff is missing keep their old one."""
        self.problem = ""
        if any(known.files is None and known.added + known.removed for known in changes):
            self.problem = "Could not load the changes; press r to retry."
            changes = [self._as_before(known) for known in changes]
        self.repositories = changes
        if self.against == Against.UNCOMMITTED:
            self.marked &= {
                (known.name, change.path) for known in changes for change in known.files or ()
            }
        self.read_at = utc_now()
        self._follow()

    def _as_before(self, fresh: RepositoryChange) -> RepositoryChange:
        known = next(
            (repository for repository in self.repositories if repository.name == fresh.name), None
        )
        return known if fresh.files is None and known is not None else fresh

    def file(self, comment: Comment) -> FileChange | None:
        """Return the file of a comment, if it is still changed."""
        return _file(self.repositories, comment)

    def _follow(self) -> None:
        """Update the line numbers of comments."""
        for comment in self.comments:
            if self.against == Against.UNCOMMITTED and comment.side == DiffSide.OLD:
                continue  # its numbers are of the base branch
            change = self.file(comment)
            lines = change.numbered() if change is not None else []
            place = find_lines(comment, lines)
            if place is not None:
                comment.start, comment.end = span_of(comment.side, lines[place.start : place.stop])

    def outdated(self, comment: Comment) -> bool:
        """Return whether its lines, or its file, are no longer part of the changes."""
        return not (_is_in(self.repositories, comment) or _is_in(self._other, comment))

    @property
    def shown_comments(self) -> list[Comment]:
        """Comments on the shown changes; outdated ones are shown with the changes since the base."""
        uncommitted = self.against == Against.UNCOMMITTED
        return [
            comment
            for comment in self.comments
            if _is_in(self.repositories, comment)
            or not (uncommitted or _is_in(self._other, comment))
        ]

    # git

    def mark(self, repository: str, path: str) -> None:
        """Mark or unmark a file for the next commit."""
        self.marked ^= {(repository, path)}

    def paths_to_commit(self, repository: str) -> list[str]:
        """Return the paths of the marked files; empty means everything."""
        paths: list[str] = []
        for checkout in self.repositories if self.against == Against.UNCOMMITTED else ():
            for change in checkout.files or () if checkout.name == repository else ():
                if (repository, change.path) in self.marked:
                    moved = change.kind == ChangeKind.RENAMED
                    paths += [change.old_path, change.path] if moved else [change.path]
        return paths

    async def commit(self, repository: str, message: str) -> Committed:
        """Commit the marked files of a repository, or everything in it.

        Raises:
            ClientError: refused or unreachable.
        """
        paths = self.paths_to_commit(repository)
        git = self._owner.client.git
        committed = await git.commit(self.replica_id, repository, message or None, paths)
        self.marked = {target for target in self.marked if target[0] != repository}
        self._read_for = None
        return committed

    async def update(self, repository: str, strategy: Strategy, *, stash: bool = False) -> Updated:
        """Merge the base branch, or rebase onto it; `stash` uncommitted changes meanwhile.

        Raises:
            ClientError: refused or unreachable; after a conflict `clash` has its files.
        """
        self._refused = None
        self._stashed.discard(repository)
        try:
            updated = await self._owner.client.git.update(
                self.replica_id, repository, strategy, autostash=stash
            )
        except ConflictError as error:
            if error.conflicts:
                files = tuple(error.conflicts)
                self._refused = MergeConflict(repository, self.base_of(repository), strategy, files)
            raise
        self._read_for = None
        if updated.conflicts:
            self._stashed.add(repository)
        return updated

    def base_of(self, repository: str) -> str:
        """Return the name of a repository's base branch."""
        status = self.state.repository(repository) if self.state is not None else None
        return (status and (status.base_branch or status.default_branch)) or "main"

    @property
    def clash(self) -> MergeConflict | None:
        """Conflicts of the last update, or those that wait in the replica."""
        waiting = self.state.record.repository_statuses if self.state is not None else ()
        for comment in waiting:
            if comment.conflicts:
                name, files = comment.repository, tuple(comment.conflicts)
                unnamed = "stash" if name in self._stashed else "merge"
                strategy = comment.operation or unnamed
                return MergeConflict(name, self.base_of(name), strategy, files, started=True)
        return self._refused

    def dismiss_clash(self) -> bool:
        """Forget the conflicts of the last update; False when there were none."""
        was, self._refused = self._refused is not None, None
        return was

    async def ask_to_resolve(self, clash: MergeConflict) -> bool:
        """Ask the agent to resolve conflicts; False when there is no chat.

        Raises:
            ClientError: the service refuses.
            OSError: the message cannot be saved to disk.
        """
        if self.chat is None:
            return False
        text = resolve_message(
            clash.repository, clash.base, clash.strategy, clash.files, started=clash.started
        )
        await self._owner.outbox.send(self.replica_id, self.chat.id, text)
        self._refused = None
        return True

    # comments

    def begin(self, lines: Lines) -> Comment:
        """Return a new comment, which its first `write` keeps, or the existing one of a whole file."""
        for comment in self.comments:
            known = (comment.repository, comment.path) == (lines.repository, lines.path)
            if known and not comment.quoted and not lines.quoted:
                return comment
        return Comment(key=uuid4().hex, unfinished=True, created_at=utc_now(), **lines.model_dump())

    def write(self, comment: Comment, text: str, *, unfinished: bool) -> None:
        """Set the text of a comment; an empty one is removed.

        Raises:
            OSError: it cannot be written to disk. It is shown anyway.
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
        """Remove a comment.

        Raises:
            OSError: it cannot be written to disk.
        """
        self.write(comment, "", unfinished=False)

    async def send(self, summary: str) -> int:
        """Send all finished comments as one message to the replica's chat; return their number.

        Raises:
            ClientError: the service refuses; the comments stay.
            OSError: the message cannot be saved to disk; the comments stay.
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


def _file(repositories: Sequence[RepositoryChange], comment: Comment) -> FileChange | None:
    for repository in repositories:
        if repository.name == comment.repository:
            return repository.file(comment.path)
    return None


def _is_in(repositories: Sequence[RepositoryChange], comment: Comment) -> bool:
    """Return whether the lines of a comment, or its file, are part of the changes."""
    change = _file(repositories, comment)
    if change is None or not comment.quoted:
        return change is not None
    return find_lines(comment, change.numbered()) is not None


def _marks(state: ReplicaState) -> object:
    """Return a value that differs when the changes may differ."""
    repositories = [
        (
            *(status.repository, status.branch, status.base_branch, status.head),
            *(str(status.git_diff), str(status.uncommitted)),
        )
        for status in state.record.repository_statuses
    ]
    return (state.status, state.untracked, state.done_at, repositories)


def repositories_of(statuses: list[RepositoryStatus]) -> list[RepositoryChange]:
    """Return the changes in a replica's record."""
    return [_repository(status) for status in statuses]


def _repository(status: RepositoryStatus) -> RepositoryChange:
    change = RepositoryChange(status.repository, status.branch, *status.changed_lines)
    text = (status.git_diff or {}).get("full_diff")
    if not isinstance(text, str):
        return change
    # Lone surrogates, which JSON may contain, cannot be written to disk.
    change.files = files = parse_changes(text.encode(errors="replace").decode())
    added, removed = sum(file.added for file in files), sum(file.removed for file in files)
    ends_early = bool(files and files[-1].hunks and files[-1].hunks[-1].cut)
    counted = change.added + change.removed
    change.cut = ends_early or (len(text) > LONG and added + removed < counted)
    if not change.cut:
        # The numbers were counted before the text was read, and may be older.
        change.added, change.removed = added, removed
    return change
