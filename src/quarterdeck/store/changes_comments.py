"""Comments on files and lines of a difference, and where they stand when it has changed."""

from collections.abc import Sequence
from uuid import UUID

from pydantic import BaseModel, TypeAdapter, ValidationError

from quarterdeck.store.changes_model import Numbered, Side
from quarterdeck.store.disk import ClientDisk
from quarterdeck.wire.base import Timestamp


class Comment(BaseModel):
    """What a person says of one line, of several that follow each other, or of a whole file."""

    key: str
    repository: str
    path: str
    side: Side
    start: int
    end: int
    """Numbers of its first and last line on its side, as they were last seen."""
    quoted: list[str]
    """The lines with their signs; none when it is about the file as a whole."""
    text: str = ""
    unfinished: bool = False
    """It is being written: it is shown and kept, and not sent."""
    created_at: Timestamp

    @property
    def where(self) -> str:
        """Its lines in words."""
        if not self.quoted:
            return "as a whole"
        lines = f"line {self.start}" if self.start == self.end else f"lines {self.start}-{self.end}"
        return lines + (" before the change" if self.side == Side.OLD else "")


class Lines(BaseModel):
    """What a comment can be about: lines of one file, or the file as a whole."""

    repository: str
    path: str
    side: Side
    start: int
    end: int
    quoted: list[str]


def whole_file(repository: str, path: str) -> Lines:
    """A file to comment on as a whole."""
    return Lines(repository=repository, path=path, side=Side.NEW, start=0, end=0, quoted=[])


def lines_of(repository: str, path: str, chosen: Sequence[Numbered]) -> Lines | None:
    """The lines to comment on among those chosen; None when there is no line of the file."""
    lines = [line for line in chosen if line.sign != "\\"]
    if not lines:
        return None
    side = Side.NEW if any(line.new for line in lines) else Side.OLD
    start, end = span_of(side, lines)
    return Lines(
        repository=repository,
        path=path,
        side=side,
        start=start,
        end=end,
        quoted=[line.sign + line.text for line in lines],
    )


def find_lines(comment: Comment, lines: Sequence[Numbered]) -> range | None:
    """Where a comment's lines are among those of its file now; None when they are gone.

    When the same lines stand in several places, the one nearest to where they were counts.
    """
    wanted = comment.quoted
    if not wanted:
        return None
    sign, text = wanted[0][:1], wanted[0][1:]
    found = (
        _match(lines, at, wanted)
        for at, line in enumerate(lines)
        if line.text == text and line.sign == sign
    )
    places = [place for place in found if place is not None]

    def distance(place: range) -> int:
        return abs(span_of(comment.side, lines[place.start : place.stop])[0] - comment.start)

    return min(places, key=distance, default=None)


def _match(lines: Sequence[Numbered], start: int, wanted: list[str]) -> range | None:
    """The lines from `start` on that are the wanted ones; remarks between them do not count."""
    at = start
    for text in wanted:
        while at < len(lines) and lines[at].sign == "\\":
            at += 1
        if at == len(lines) or lines[at].sign + lines[at].text != text:
            return None
        at += 1
    return range(start, at)


def span_of(side: Side, lines: Sequence[Numbered]) -> tuple[int, int]:
    """The first and the last number that lines have on a side."""
    numbers = [line.new if side == Side.NEW else line.old for line in lines]
    real = [number for number in numbers if number]
    return min(real), max(real)


_COMMENTS = TypeAdapter(list[Comment])


class CommentsOnDisk:
    """The comments of one replica that have not been sent."""

    def __init__(self, disk: ClientDisk, replica_id: UUID) -> None:
        self._disk = disk
        self._replica_id = replica_id

    def read(self) -> list[Comment]:
        """What an earlier cockpit kept, oldest first."""
        text = self._disk.comments(self._replica_id)
        if not text:
            return []
        try:
            return _COMMENTS.validate_json(text)
        except ValidationError:
            self._disk.set_comments_aside(self._replica_id)
            return []

    def write(self, comments: list[Comment]) -> None:
        """Keeps them all.

        Raises:
            OSError: the disk does not take it.
        """
        text = _COMMENTS.dump_json(comments).decode() if comments else ""
        self._disk.save_comments(self._replica_id, text)
