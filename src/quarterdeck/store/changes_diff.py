"""A unified diff of git, parsed into files, hunks and lines.

Nothing here raises: unknown lines are skipped, and a truncated diff is read as far as it goes. Hunks
are read by the counts of their headers, never by the text of a line: a removed line may start with
`--- a/`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class DiffSide(StrEnum):
    """The state before the change, or the one after it."""

    OLD = "old"
    NEW = "new"


class ChangeKind(StrEnum):
    """The kind of change of a file."""

    CHANGED = "changed"
    ADDED = "new"
    DELETED = "deleted"
    RENAMED = "renamed"
    COPIED = "copied"


class Numbered(NamedTuple):
    """A line of a hunk. `old` and `new` are its numbers, 0 where it does not exist."""

    sign: str
    old: int
    new: int
    text: str

    @property
    def side(self) -> DiffSide:
        """The side of its number: a removed line has one of the old file only."""
        return DiffSide.OLD if self.sign == "-" else DiffSide.NEW

    @property
    def number(self) -> int:
        """Its number on its side."""
        return self.old if self.sign == "-" else self.new


@dataclass(frozen=True, slots=True)
class Hunk:
    """Consecutive lines, each with its sign: blank, `+`, `-`, or a backslash for a remark."""

    old_start: int
    new_start: int
    section: str
    """The section heading of git: the line of the function."""
    lines: list[str]
    cut: bool = False
    """Whether lines that its header announces are missing."""

    def numbered(self) -> Iterator[Numbered]:
        """Yield its lines with their numbers."""
        old, new = self.old_start, self.new_start
        for line in self.lines:
            match line[:1]:
                case "+":
                    yield Numbered("+", 0, new, line[1:])
                    new += 1
                case "-":
                    yield Numbered("-", old, 0, line[1:])
                    old += 1
                case "\\":
                    yield Numbered("\\", 0, 0, line[1:].strip())
                case _:
                    yield Numbered(" ", old, new, line[1:])
                    old += 1
                    new += 1


@dataclass(slots=True)
class FileChange:
    """The change of one file."""

    old_path: str
    new_path: str
    kind: ChangeKind = ChangeKind.CHANGED
    old_mode: str = ""
    new_mode: str = ""
    binary: bool = False
    added: int = 0
    removed: int = 0
    hunks: list[Hunk] = field(default_factory=list[Hunk])
    text: str = ""
    """Its part of the diff."""
    _numbered: list[Numbered] | None = field(default=None, repr=False, compare=False)

    @property
    def path(self) -> str:
        """The path of the file now, or before it was deleted."""
        return self.old_path if self.kind == ChangeKind.DELETED else self.new_path

    @property
    def length(self) -> int:
        """Lines of the diff, including unchanged ones around the changes."""
        return sum(len(hunk.lines) for hunk in self.hunks)

    @property
    def mode_changed(self) -> bool:
        """Whether the permissions or the type of an existing file changed."""
        stays = self.kind not in {ChangeKind.ADDED, ChangeKind.DELETED}
        return stays and self.old_mode != self.new_mode

    def numbered(self) -> list[Numbered]:
        """Return the lines of all hunks with their numbers; cached."""
        if self._numbered is None:
            self._numbered = [line for hunk in self.hunks for line in hunk.numbered()]
        return self._numbered


@dataclass(slots=True)
class RepositoryChange:
    """The diff of one repository. `files` is None until it is read."""

    name: str
    branch: str | None = None
    added: int = 0
    removed: int = 0
    files: list[FileChange] | None = None
    cut: bool = False
    """Whether the service sent only its start."""

    def file(self, path: str) -> FileChange | None:
        """Return the change of a path."""
        return next((file for file in self.files or () if file.path == path), None)


HEAD = "diff --git "
_HUNK = re.compile(r"@@ -(\d{1,18})(?:,(\d{1,18}))? \+(\d{1,18})(?:,(\d{1,18}))? @@ ?(.*)")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS = {
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
}


def parse_changes(text: str) -> list[FileChange]:
    """Return the changed files of a diff, in its order."""
    # Not splitlines(): a carriage return or a form feed is a part of its line.
    lines = text.removesuffix("\n").split("\n")
    files: list[FileChange] = []
    at = 0
    while at < len(lines):
        if not lines[at].startswith(HEAD):
            at += 1
            continue
        start = at
        change, at = _read_file(lines, at)
        change.text = "\n".join(lines[start:at]) + "\n"
        files.append(change)
    return files


def _read_file(lines: list[str], at: int) -> tuple[FileChange, int]:
    change = FileChange(*_paths(lines[at].removeprefix(HEAD)))
    at += 1
    while at < len(lines) and not lines[at].startswith(HEAD):
        match = _HUNK.match(lines[at])
        if match is None:
            _take_remark(change, lines[at])
            at += 1
        else:
            at = _read_hunk(change, match, lines, at + 1)
    return change, at


def _read_hunk(change: FileChange, head: re.Match[str], lines: list[str], at: int) -> int:
    old_left, new_left = int(head[2] or 1), int(head[4] or 1)
    start = at
    while at < len(lines) and (old_left > 0 or new_left > 0):
        match lines[at][:1]:
            case "+":
                new_left -= 1
                change.added += 1
            case "-":
                old_left -= 1
                change.removed += 1
            case " " | "":
                old_left -= 1
                new_left -= 1
            case "\\":
                pass
            case _:
                break
        at += 1
    if at < len(lines) and lines[at].startswith("\\"):
        at += 1
    cut = old_left > 0 or new_left > 0
    change.hunks.append(Hunk(int(head[1]), int(head[3]), head[5], lines[start:at], cut))
    return at


def _take_remark(change: FileChange, line: str) -> None:
    """Apply a line between the header of a file and its first hunk."""
    for start, take in _REMARKS:
        if line.startswith(start):
            take(change, line.removeprefix(start))
            return


def _old_mode(change: FileChange, rest: str) -> None:
    change.old_mode = rest


def _new_mode(change: FileChange, rest: str) -> None:
    change.new_mode = rest


def _added(change: FileChange, rest: str) -> None:
    change.kind, change.new_mode = ChangeKind.ADDED, rest


def _deleted(change: FileChange, rest: str) -> None:
    change.kind, change.old_mode = ChangeKind.DELETED, rest


def _renamed_from(change: FileChange, rest: str) -> None:
    change.kind, change.old_path = ChangeKind.RENAMED, unquoted(rest)


def _copied_from(change: FileChange, rest: str) -> None:
    change.kind, change.old_path = ChangeKind.COPIED, unquoted(rest)


def _moved_to(change: FileChange, rest: str) -> None:
    change.new_path = unquoted(rest)


def _binary(change: FileChange, rest: str) -> None:
    change.binary = True


_REMARKS = (
    ("old mode ", _old_mode),
    ("new mode ", _new_mode),
    ("new file mode ", _added),
    ("deleted file mode ", _deleted),
    ("rename from ", _renamed_from),
    ("rename to ", _moved_to),
    ("copy from ", _copied_from),
    ("copy to ", _moved_to),
    ("Binary files ", _binary),
    ("GIT binary patch", _binary),
)


def _paths(head: str) -> tuple[str, str]:
    """Return the two paths of a header. Only renamed files have different ones, which follow below it.

    Both prefixes have the same length in every configuration, so the middle is known.
    """
    middle = len(head) // 2
    old, new = unquoted(head[:middle]), unquoted(head[middle + 1 :])
    if old == new:
        return old, new
    return old.partition("/")[2] or old, new.partition("/")[2] or new


def unquoted(path: str) -> str:
    """Return a path without git's quotes and escapes, which unusual ones have."""
    if len(path) < 2 or not (path.startswith('"') and path.endswith('"')):
        return path
    return _ESCAPE.sub(_byte, path[1:-1].encode()).decode(errors="replace")


def _byte(match: re.Match[bytes]) -> bytes:
    escaped = match[1]
    if len(escaped) == 3:
        return bytes([int(escaped, 8) & 0xFF])
    return _LETTERS.get(escaped, escaped)
