"""What a difference between two states of a repository is made of. Pure data."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Side(StrEnum):
    """The state before the change, or the one after it."""

    OLD = "old"
    NEW = "new"


class ChangeKind(StrEnum):
    """What became of a file."""

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
    def side(self) -> Side:
        """Where its number counts: a line that went has one of the old file only."""
        return Side.OLD if self.sign == "-" else Side.NEW

    @property
    def number(self) -> int:
        """Its number on its side."""
        return self.old if self.sign == "-" else self.new


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that stand together, each with its sign: blank, `+`, `-`, or `\\` for a remark."""

    old_start: int
    new_start: int
    section: str
    """What git says of where it is: the line of the function."""
    lines: list[str]
    cut: bool = False
    """Lines that its head announces are missing."""

    def numbered(self) -> Iterator[Numbered]:
        """Its lines with their numbers."""
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
    """What happened to one file."""

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
    """As git told it."""
    _numbered: list[Numbered] | None = field(default=None, repr=False, compare=False)

    @property
    def path(self) -> str:
        """Where the file is now, or was before it was deleted."""
        return self.old_path if self.kind == ChangeKind.DELETED else self.new_path

    @property
    def length(self) -> int:
        """Lines of the difference, unchanged ones around the changes included."""
        return sum(len(hunk.lines) for hunk in self.hunks)

    @property
    def mode_changed(self) -> bool:
        """Whether a file that stays has other rights, or is another kind of file now."""
        stays = self.kind not in {ChangeKind.ADDED, ChangeKind.DELETED}
        return stays and self.old_mode != self.new_mode

    def numbered(self) -> list[Numbered]:
        """The lines of all hunks with their numbers; made once."""
        if self._numbered is None:
            self._numbered = [line for hunk in self.hunks for line in hunk.numbered()]
        return self._numbered


@dataclass(slots=True)
class RepositoryChange:
    """The difference of one repository. `files` is None while it was never read."""

    name: str
    branch: str | None = None
    added: int = 0
    removed: int = 0
    files: list[FileChange] | None = None
    cut: bool = False
    """The service told only its beginning."""

    def file(self, path: str) -> FileChange | None:
        """The change of a path."""
        return next((one for one in self.files or () if one.path == path), None)
