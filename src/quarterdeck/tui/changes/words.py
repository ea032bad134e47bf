"""What is said of files and repositories besides their lines."""

from collections.abc import Sequence

from quarterdeck.store.changes_comments import Comment
from quarterdeck.store.changes_model import ChangeKind, FileChange, RepositoryChange
from quarterdeck.store.changes_review import Review
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.text import one_line
from quarterdeck.wire.replicas import WorkspaceStatus

MINUS = "\u2212"
_MODES = {
    "100644": "file",
    "100755": "executable",
    "120000": "symbolic link",
    "160000": "submodule",
}


def counts(added: int, removed: int) -> str:
    """Lines that came and went."""
    return f"+{added} {MINUS}{removed}"


def path_of(change: FileChange) -> str:
    """Where a file is, and where it was when it has moved."""
    if change.kind in {ChangeKind.RENAMED, ChangeKind.COPIED}:
        return one_line(f"{change.old_path} \u2192 {change.new_path}")
    return one_line(change.path)


def kind_of(change: FileChange) -> str:
    """What became of it, when it is not just other lines."""
    return "" if change.kind == ChangeKind.CHANGED else change.kind.value


def notes_of(about: FileChange | RepositoryChange) -> list[str]:
    """Sentences under its head."""
    if isinstance(about, RepositoryChange):
        return _of_repository(about)
    notes: list[str] = []
    if about.mode_changed:
        notes.append(f"{_mode(about.old_mode)} \u2192 {_mode(about.new_mode)}")
    elif about.new_mode in {"120000", "160000"} or about.old_mode in {"120000", "160000"}:
        notes.append(_mode(about.new_mode or about.old_mode))
    if about.binary:
        notes.append("Binary: there are no lines to show.")
    elif not about.hunks and not about.mode_changed:
        moved = about.kind in {ChangeKind.RENAMED, ChangeKind.COPIED}
        notes.append("Its lines are the same." if moved else "Empty.")
    return notes


def _of_repository(repository: RepositoryChange) -> list[str]:
    if repository.files is None:
        return ["Its changes have not been read."]
    if not repository.files:
        return ["No changes."]
    if repository.cut:
        shown = sum(one.added + one.removed for one in repository.files)
        told = repository.added + repository.removed
        of = f" {shown} of {told}" if told > shown else ""
        return [f"Too large to be told in full: the first{of} changed lines."]
    return []


def _mode(mode: str) -> str:
    name = _MODES.get(mode)
    return f"{name} ({mode})" if name else one_line(mode)


def comment_head(comment: Comment, *, outdated: bool) -> str:
    """What stands above a comment's text."""
    kind = "Unfinished comment" if comment.unfinished else "Comment"
    if not outdated:
        return f"{kind}, {comment.where}"
    was = f" was {one_line(comment.quoted[0])}" if comment.quoted else ""
    return f"{kind}, outdated: {one_line(comment.path)} {comment.where}{was}"


def state_words(review: Review, state: ReplicaState, *, online: bool) -> str:
    """The line over the changes: how new they are, or why there are none. Empty when all is well."""
    if review.problem:
        return one_line(review.problem)
    when = f" This is how it was at {_clock(review)}." if review.read_at else ""
    match state.status:
        case WorkspaceStatus.ACTIVE:
            if not online and when:
                return f"No line to the service.{when}"
            return "" if when else "Reading ..."
        case WorkspaceStatus.PREPARING:
            return f"It is getting ready.{when}"
        case WorkspaceStatus.SLEEPING:
            return keyed("It sleeps; {replica.wake} wakes it.") + when
        case WorkspaceStatus.ARCHIVED:
            return keyed("It is archived; {replica.wake} restores it.") + when
        case _:
            return keyed("It has failed; {replica.wake} tries again.") + when


def _clock(review: Review) -> str:
    return review.read_at.astimezone().strftime("%H:%M") if review.read_at else ""


def resting_words(state: ReplicaState) -> str:
    """In the place of changes that cannot be read while a replica rests."""
    told = [
        f"{one_line(one.repository)} {counts(int(diff.get('added') or 0), int(diff.get('removed') or 0))}"
        for one in state.record.repository_statuses
        if (diff := one.git_diff)
    ]
    if not state.record.repository_statuses:
        return "" if state.active else "Its changes are read from its files while it is active."
    return "Changed lines: " + ", ".join(told) if told else "No changes are known."


def comments_words(comments: Sequence[Comment]) -> str:
    """How many there are to be sent."""
    finished = sum(not comment.unfinished for comment in comments)
    sends = keyed("{changes.send} sends")
    parts = [f"{finished} comment{'' if finished == 1 else 's'}, {sends}"] if finished else []
    if len(comments) > finished:
        parts.append(f"{len(comments) - finished} unfinished")
    return ", ".join(parts)
