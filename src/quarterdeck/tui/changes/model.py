"""The state of the Changes tab, and its lines with invisible characters spelled out.

The content of the view, independent of its width: sections of items.

Review --> sections_of --> Section (a repository's head, or a file) --> Item (one line, one comment)
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from quarterdeck.store.changes_comments import Comment, find_lines
from quarterdeck.store.changes_diff import ChangeKind, FileChange, Hunk, Numbered, RepositoryChange
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.review import MergeConflict, Review
from quarterdeck.transcript.text import clean, one_line
from quarterdeck.tui.actions import keyed
from quarterdeck.tui.themes import checks_words
from quarterdeck.wire.git import Against
from quarterdeck.wire.git_state import RepositoryStatus
from quarterdeck.wire.replicas import WorkspaceStatus

MINUS = "\u2212"
MOST_FILES = 5
"""How many files with conflicts are named."""
_MODES = {
    "100644": "file",
    "100755": "executable",
    "120000": "symbolic link",
    "160000": "submodule",
}


def counts(added: int, removed: int) -> str:
    """Return the numbers of added and removed lines."""
    return f"+{added} {MINUS}{removed}"


def path_of(change: FileChange) -> str:
    """Return the path of a file, and its previous path when it has moved."""
    if change.kind in {ChangeKind.RENAMED, ChangeKind.COPIED}:
        return one_line(f"{change.old_path} \u2192 {change.new_path}")
    return one_line(change.path)


def kind_of(change: FileChange) -> str:
    """Return what happened to it, unless it is only modified."""
    return "" if change.kind == ChangeKind.CHANGED else change.kind.value


def notes_of(about: FileChange | RepositoryChange) -> list[str]:
    """Return the sentences under a file's head."""
    if isinstance(about, RepositoryChange):
        return _of_repository(about)
    notes: list[str] = []
    if about.mode_changed:
        notes.append(f"{_mode(about.old_mode)} \u2192 {_mode(about.new_mode)}")
    elif about.new_mode in {"120000", "160000"} or about.old_mode in {"120000", "160000"}:
        notes.append(_mode(about.new_mode or about.old_mode))
    if about.binary:
        notes.append("Binary file.")
    elif not about.hunks and not about.mode_changed:
        moved = about.kind in {ChangeKind.RENAMED, ChangeKind.COPIED}
        notes.append("No content changes (mode or rename only)." if moved else "Empty.")
    return notes


def _of_repository(repository: RepositoryChange) -> list[str]:
    if repository.files is None:
        return ["Changes not loaded."]
    if not repository.files:
        return ["No changes."]
    if repository.cut:
        shown = sum(file.added + file.removed for file in repository.files)
        total = repository.added + repository.removed
        of = f" {shown} of {total}" if total > shown else ""
        return [f"Too large to show in full: the first{of} changed lines."]
    return []


def _mode(mode: str) -> str:
    name = _MODES.get(mode)
    return f"{name} ({mode})" if name else one_line(mode)


def comment_head(comment: Comment, *, outdated: bool) -> str:
    """Return the heading of a comment."""
    kind = "Unfinished comment" if comment.unfinished else "Comment"
    if not outdated:
        return f"{kind}, {comment.where}"
    was = f" was {one_line(comment.quoted[0])}" if comment.quoted else ""
    return f"{kind}, outdated: {one_line(comment.path)} {comment.where}{was}"


def state_words(review: Review, state: ReplicaState, *, online: bool) -> str:
    """Return the line above the changes: how recent they are, or why there are none. Empty when all is well."""
    if review.problem:
        return one_line(review.problem)
    when = f" As of {_clock(review)}." if review.read_at else ""
    match state.status:
        case WorkspaceStatus.ACTIVE:
            if not online and when:
                return f"Offline.{when}"
            return "" if when else "Loading …"
        case WorkspaceStatus.PREPARING:
            return f"Preparing.{when}"
        case WorkspaceStatus.SLEEPING:
            asleep = keyed("Asleep. Sending comments wakes it; {replica.wake} wakes it now.")
            return asleep + ("" if online else when)
        case WorkspaceStatus.ARCHIVED:
            return keyed("Archived: {replica.wake} restores the files.") + when
        case _:
            return keyed("Failed: {replica.wake} retries.") + ("" if online else when)


def _clock(review: Review) -> str:
    return review.read_at.astimezone().strftime("%H:%M") if review.read_at else ""


def resting_words(state: ReplicaState) -> str:
    """Return the text shown instead of changes that cannot be read while a replica rests."""
    return "\n".join(_status_line(status) for status in state.record.repository_statuses)


def _status_line(status: RepositoryStatus) -> str:
    diff, left = status.git_diff or {}, status.uncommitted
    lines = counts(int(diff.get("added") or 0), int(diff.get("removed") or 0)) if diff else ""
    ahead = f"{status.ahead} {'commit' if status.ahead == 1 else 'commits'}" if status.ahead else ""
    files = left.files if left else 0
    rest = f"{files} {'file' if files == 1 else 'files'} uncommitted" if files else ""
    summary = ", ".join(part for part in (lines, ahead, rest) if part) or "no changes known"
    return f"{one_line(status.repository)} {one_line(status.branch or '')}: {summary}"


def comments_words(comments: Sequence[Comment]) -> str:
    """Return how many comments are ready to be sent."""
    finished = sum(not comment.unfinished for comment in comments)
    sends = keyed("{changes.send} sends")
    parts = [f"{finished} comment{'' if finished == 1 else 's'}, {sends}"] if finished else []
    if len(comments) > finished:
        parts.append(f"{len(comments) - finished} unfinished")
    return ", ".join(parts)


def against_words(review: Review) -> str:
    """Return which changes are shown, unless it is all of them, and how many are marked."""
    if review.against == Against.BASE:
        return ""
    marked = len(review.marked)
    return f"uncommitted, {marked} marked" if marked else "uncommitted"


def red_words(state: ReplicaState | None) -> str:
    """Return that checks of a pull request have failed, and what can be done about it."""
    found = state.failing if state is not None else []
    words = ", ".join(f"#{pull.number} {checks_words(pull)}" for pull in found)
    return words and keyed(f"{words}: {{replica.fix-checks}} asks the agent to fix them")


def clash_words(clash: MergeConflict) -> str:
    """Name files with conflicts, and what can be done about them."""
    files = ", ".join(one_line(file) for file in clash.files[:MOST_FILES])
    if len(clash.files) > MOST_FILES:
        files += f" and {len(clash.files) - MOST_FILES} more"
    if clash.strategy == "stash":
        head = "Updated. The changes are also in the stash: conflicts"
    elif clash.started:
        head = "Conflicts"
    else:
        head = f"Nothing was changed: conflicts with {one_line(clash.base)}"
    return f"{head} in {files}. " + keyed("{changes.resolve} asks the agent to resolve them.")


LARGE = 3_000
"""Lines of a difference that is folded by default."""


class ItemKind(Enum):
    """The kind of an item."""

    REPOSITORY = auto()
    FILE = auto()
    NOTE = auto()
    HUNK = auto()
    LINE = auto()
    PAIR = auto()
    COMMENT = auto()


class Item(NamedTuple):
    """An item that the cursor can be on.

    `line` and `partner` are indices into the section's lines. For a LINE the partner is the line it
    replaces, or that replaces it; for a PAIR they are the old and the new side. -1 is none.
    """

    kind: ItemKind
    line: int = -1
    partner: int = -1
    text: str = ""
    comment: Comment | None = None


class DiffSection:
    """A repository's head (`change` is None), or one changed file."""

    def __init__(
        self,
        repository: RepositoryChange,
        change: FileChange | None,
        comments: Sequence[Comment] = (),
        *,
        folded: bool = False,
        hidden: AbstractSet[str] = frozenset(),
    ) -> None:
        self.repository = repository
        self.change = change
        self.comments = list(comments)
        self.folded = folded
        self.hidden = frozenset(hidden)
        """Hunks of which only the head is shown, by their text: a changed hunk is shown again."""

    @property
    def key(self) -> tuple[str, str]:
        """The identity of the file across readings."""
        return (self.repository.name, self.change.path if self.change is not None else "")

    @property
    def lines(self) -> list[Numbered]:
        """The lines of all hunks."""
        return self.change.numbered() if self.change is not None else []

    def with_folded(self, folded: bool) -> "DiffSection":
        """Return a copy, opened or folded."""
        return DiffSection(
            self.repository, self.change, self.comments, folded=folded, hidden=self.hidden
        )

    def with_hidden(self, hidden: AbstractSet[str]) -> "DiffSection":
        """Return a copy with other hunks folded."""
        return DiffSection(
            self.repository, self.change, self.comments, folded=self.folded, hidden=hidden
        )

    def hunk_of(self, line: int) -> Hunk | None:
        """Return the hunk that a line is in."""
        end = 0
        for hunk in self.change.hunks if self.change is not None else ():
            end += len(hunk.lines)
            if line < end:
                return hunk
        return None

    def items(self, *, split: bool) -> list[Item]:
        """Return its items in display order."""
        if self.change is None:
            notes = [Item(ItemKind.NOTE, text=note) for note in notes_of(self.repository)]
            return [Item(ItemKind.REPOSITORY), *notes, *self._loose()]
        if self.folded:
            return [Item(ItemKind.FILE)]
        placed, loose = self._placed()
        found = [
            Item(ItemKind.FILE),
            *(Item(ItemKind.COMMENT, comment=comment) for comment in loose),
        ]
        found += [Item(ItemKind.NOTE, text=note) for note in notes_of(self.change)]
        at, lines = 0, self.lines
        for hunk in self.change.hunks:
            folded = hunk_key(hunk) in self.hidden
            found.append(Item(ItemKind.HUNK, line=at, text=_head(hunk, folded=folded)))
            if not folded:
                sides = _split if split else _unified
                rows = sides(lines, at, len(hunk.lines))
                found += _with_comments(rows, placed) if placed else rows
            at += len(hunk.lines)
        return found

    def _loose(self) -> Iterator[Item]:
        return (Item(ItemKind.COMMENT, comment=comment) for comment in self.comments)

    def _placed(self) -> tuple[dict[int, list[Comment]], list[Comment]]:
        """Return comments by the index of the line that they are under, and those without one."""
        placed: dict[int, list[Comment]] = {}
        loose: list[Comment] = []
        for comment in self.comments:
            found = find_lines(comment, self.lines)
            if found is None:
                loose.append(comment)
            else:
                placed.setdefault(found.stop - 1, []).append(comment)
        return placed, loose


def hunk_key(hunk: Hunk) -> str:
    """Return a key of a hunk that stays the same across readings, wherever it is in the file."""
    return "\n".join(hunk.lines)


def _head(hunk: Hunk, *, folded: bool) -> str:
    head = f"@@ {hunk.new_start or hunk.old_start} {hunk.section}".rstrip()
    if not folded:
        return head
    count = len(hunk.lines)
    return f"\u25b8 {head} \u00b7 " + ("1 line" if count == 1 else f"{count} lines")


def _with_comments(rows: Iterator[Item], placed: dict[int, list[Comment]]) -> Iterator[Item]:
    for row in rows:
        yield row
        indices = (row.line, row.partner) if row.kind == ItemKind.PAIR else (row.line,)
        for index in dict.fromkeys(indices):
            for comment in placed.get(index, ()):
                yield Item(ItemKind.COMMENT, comment=comment)


def _runs(lines: list[Numbered], begin: int, count: int) -> Iterator[tuple[range, range]]:
    """Yield blocks of removed lines with those that replace them; else one line in both."""
    at, end = begin, begin + count
    while at < end:
        removed = at
        while at < end and lines[at].sign == "-":
            at += 1
        added = at
        # A remark on the end of the old file is between the two.
        while at < end and lines[at].sign == "\\" and added == at and removed < added:
            at += 1
            added = at
        while at < end and lines[at].sign == "+":
            at += 1
        if at == removed:
            yield range(at, at + 1), range(at, at + 1)
            at += 1
        else:
            yield range(removed, added), range(added, at)


def _unified(lines: list[Numbered], begin: int, count: int) -> Iterator[Item]:
    for removed, added in _runs(lines, begin, count):
        if removed == added:
            yield Item(ItemKind.LINE, removed.start)
            continue
        pairs = min(len(removed), len(added))
        for number, index in enumerate(removed):
            yield Item(ItemKind.LINE, index, added[number] if number < pairs else -1)
        for number, index in enumerate(added):
            yield Item(ItemKind.LINE, index, removed[number] if number < pairs else -1)


def _split(lines: list[Numbered], begin: int, count: int) -> Iterator[Item]:
    for removed, added in _runs(lines, begin, count):
        for number in range(max(len(removed), len(added))):
            yield Item(
                ItemKind.PAIR,
                removed[number] if number < len(removed) else -1,
                added[number] if number < len(added) else -1,
            )


def sections_of(
    repositories: Sequence[RepositoryChange],
    comments: Sequence[Comment],
    folded: Mapping[tuple[str, str], bool],
    hidden: Mapping[tuple[str, str], AbstractSet[str]],
) -> list[DiffSection]:
    """Return the sections of all repositories. `folded`, `hidden`: what the user opened or folded."""
    sections: list[DiffSection] = []
    for repository in repositories:
        about = [comment for comment in comments if comment.repository == repository.name]
        files = repository.files or []
        paths = {change.path for change in files}
        sections.append(DiffSection(repository, None, [o for o in about if o.path not in paths]))
        for change in files:
            key = (repository.name, change.path)
            sections.append(
                DiffSection(
                    repository,
                    change,
                    [comment for comment in about if comment.path == change.path],
                    folded=folded.get(key, change.length > LARGE),
                    hidden=hidden.get(key, frozenset()),
                )
            )
    return sections


TAB = 4
LONGEST = 2_000
"""Characters of a line that are shown."""

# Control and format characters, ends of lines and paragraphs within a line, half characters, and those
# unknown to Python's tables; then the spaces that look like nothing.
_CATEGORIES = {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0]")


def visible(text: str) -> str:
    """Return a line without its end, harmless and in full.

    Characters that a terminal must not receive are not left out, as they are elsewhere, but spelled out:
    a review has to find changes of invisible characters.
    """
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]} ... {len(text) - LONGEST} more characters"
    if text.isascii() and text.isprintable():
        return text
    return _spelled(text)


@lru_cache(maxsize=2048)
def _spelled(text: str) -> str:
    ends = text.endswith("\r")
    text = text.removesuffix("\r").expandtabs(TAB) + ("\u240d" if ends else "")
    if text.isascii() and text.isprintable():
        return text
    # Stacked or joined characters are thinned as everywhere.
    return clean("".join(_shown(character) for character in text))


def _shown(character: str) -> str:
    if " " <= character <= "~":
        return character
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if unicodedata.category(character) in _CATEGORIES or _INVISIBLE.match(character):
        return f"<U+{code:04X}>"
    return character
