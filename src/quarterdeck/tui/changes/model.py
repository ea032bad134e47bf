"""What the view shows, before it has a width: sections of items.

Review --> sections_of --> Section (a repository's head, or a file) --> Item (one line, one comment)
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum, auto
from typing import NamedTuple

from quarterdeck.store.changes_comments import Comment, find_lines
from quarterdeck.store.changes_model import FileChange, Hunk, Numbered, RepositoryChange
from quarterdeck.tui.changes.words import notes_of

LARGE = 3_000
"""Lines of a difference that is folded until it is opened."""


class Kind(Enum):
    """What an item is."""

    REPOSITORY = auto()
    FILE = auto()
    NOTE = auto()
    HUNK = auto()
    LINE = auto()
    PAIR = auto()
    COMMENT = auto()


class Item(NamedTuple):
    """One thing that the cursor can be on.

    `line` and `partner` are indices into the section's lines. Of a LINE the partner is what it took the
    place of, or what took its place; of a PAIR they are the old and the new side. -1 is none.
    """

    kind: Kind
    line: int = -1
    partner: int = -1
    text: str = ""
    comment: Comment | None = None


class Section:
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
        """Hunks of which only the head is shown, by their text: other text is shown again."""

    @property
    def key(self) -> tuple[str, str]:
        """The same for the same file at another time."""
        return (self.repository.name, self.change.path if self.change is not None else "")

    @property
    def lines(self) -> list[Numbered]:
        """The lines of all hunks."""
        return self.change.numbered() if self.change is not None else []

    def with_folded(self, folded: bool) -> "Section":
        """The same one, opened or folded."""
        return Section(
            self.repository, self.change, self.comments, folded=folded, hidden=self.hidden
        )

    def with_hidden(self, hidden: AbstractSet[str]) -> "Section":
        """The same one with other hunks folded."""
        return Section(
            self.repository, self.change, self.comments, folded=self.folded, hidden=hidden
        )

    def hunk_of(self, line: int) -> Hunk | None:
        """The hunk that a line is in."""
        end = 0
        for hunk in self.change.hunks if self.change is not None else ():
            end += len(hunk.lines)
            if line < end:
                return hunk
        return None

    def items(self, *, split: bool) -> list[Item]:
        """Its items, in the order in which they are shown."""
        if self.change is None:
            notes = [Item(Kind.NOTE, text=note) for note in notes_of(self.repository)]
            return [Item(Kind.REPOSITORY), *notes, *self._loose()]
        if self.folded:
            return [Item(Kind.FILE)]
        placed, loose = self._placed()
        found = [Item(Kind.FILE), *(Item(Kind.COMMENT, comment=one) for one in loose)]
        found += [Item(Kind.NOTE, text=note) for note in notes_of(self.change)]
        at, lines = 0, self.lines
        for hunk in self.change.hunks:
            folded = hunk_key(hunk) in self.hidden
            found.append(Item(Kind.HUNK, line=at, text=_head(hunk, folded=folded)))
            if not folded:
                sides = _split if split else _unified
                rows = sides(lines, at, len(hunk.lines))
                found += _with_comments(rows, placed) if placed else rows
            at += len(hunk.lines)
        return found

    def _loose(self) -> Iterator[Item]:
        return (Item(Kind.COMMENT, comment=one) for one in self.comments)

    def _placed(self) -> tuple[dict[int, list[Comment]], list[Comment]]:
        """Comments by the index of the line that they stand under, and those without one."""
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
    """The same for the same hunk at another time, wherever in the file it is then."""
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
        indices = (row.line, row.partner) if row.kind == Kind.PAIR else (row.line,)
        for index in dict.fromkeys(indices):
            for comment in placed.get(index, ()):
                yield Item(Kind.COMMENT, comment=comment)


def _runs(lines: list[Numbered], begin: int, count: int) -> Iterator[tuple[range, range]]:
    """Blocks of lines that went and of those that came for them; else one line in both."""
    at, end = begin, begin + count
    while at < end:
        gone = at
        while at < end and lines[at].sign == "-":
            at += 1
        came = at
        # A remark on the end of the old file stands between the two.
        while at < end and lines[at].sign == "\\" and came == at and gone < came:
            at += 1
            came = at
        while at < end and lines[at].sign == "+":
            at += 1
        if at == gone:
            yield range(at, at + 1), range(at, at + 1)
            at += 1
        else:
            yield range(gone, came), range(came, at)


def _unified(lines: list[Numbered], begin: int, count: int) -> Iterator[Item]:
    for gone, came in _runs(lines, begin, count):
        if gone == came:
            yield Item(Kind.LINE, gone.start)
            continue
        pairs = min(len(gone), len(came))
        for number, index in enumerate(gone):
            yield Item(Kind.LINE, index, came[number] if number < pairs else -1)
        for number, index in enumerate(came):
            yield Item(Kind.LINE, index, gone[number] if number < pairs else -1)


def _split(lines: list[Numbered], begin: int, count: int) -> Iterator[Item]:
    for gone, came in _runs(lines, begin, count):
        for number in range(max(len(gone), len(came))):
            yield Item(
                Kind.PAIR,
                gone[number] if number < len(gone) else -1,
                came[number] if number < len(came) else -1,
            )


def sections_of(
    repositories: Sequence[RepositoryChange],
    comments: Sequence[Comment],
    folded: Mapping[tuple[str, str], bool],
    hidden: Mapping[tuple[str, str], AbstractSet[str]],
) -> list[Section]:
    """The sections of all repositories. `folded`, `hidden`: what the person opened or folded."""
    sections: list[Section] = []
    for repository in repositories:
        about = [one for one in comments if one.repository == repository.name]
        files = repository.files or []
        paths = {change.path for change in files}
        sections.append(Section(repository, None, [o for o in about if o.path not in paths]))
        for change in files:
            key = (repository.name, change.path)
            sections.append(
                Section(
                    repository,
                    change,
                    [one for one in about if one.path == change.path],
                    folded=folded.get(key, change.length > LARGE),
                    hidden=hidden.get(key, frozenset()),
                )
            )
    return sections
