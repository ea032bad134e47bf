"""Comments on changes, and the message that sends them to the agent."""

import re
from collections.abc import Sequence
from uuid import UUID

from pydantic import BaseModel, TypeAdapter, ValidationError

from quarterdeck.store.changes_diff import DiffSide, Numbered
from quarterdeck.store.disk import ClientDisk
from quarterdeck.wire.base import Timestamp


class Lines(BaseModel):
    """The target of a comment: lines of one file, or the whole file."""

    repository: str
    path: str
    side: DiffSide
    start: int
    end: int
    """Numbers of the first and the last line on their side, as last seen."""
    quoted: list[str]
    """The lines with their signs; empty for a whole file."""


class Comment(Lines):
    """A comment on one line, on consecutive lines, or on a whole file."""

    key: str
    text: str = ""
    unfinished: bool = False
    """It is being written: shown and kept, but not sent."""
    created_at: Timestamp

    @property
    def where(self) -> str:
        """Its lines as text."""
        if not self.quoted:
            return "as a whole"
        lines = f"line {self.start}" if self.start == self.end else f"lines {self.start}-{self.end}"
        return lines + (" before the change" if self.side == DiffSide.OLD else "")


def whole_file(repository: str, path: str) -> Lines:
    """Return a whole file as the target of a comment."""
    return Lines(repository=repository, path=path, side=DiffSide.NEW, start=0, end=0, quoted=[])


def lines_of(repository: str, path: str, chosen: Sequence[Numbered]) -> Lines | None:
    """Return the chosen lines as the target of a comment; None when none is a line of the file."""
    lines = [line for line in chosen if line.sign != "\\"]
    if not lines:
        return None
    side = DiffSide.NEW if any(line.new for line in lines) else DiffSide.OLD
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
    """Return the range of a comment's lines in its file now; None when they were removed.

    When the same lines are in several places, the nearest to their old place counts.
    """
    wanted = comment.quoted
    if not wanted:
        return None
    sign, text = wanted[0][:1], wanted[0][1:]
    matches = (
        _match(lines, at, wanted)
        for at, line in enumerate(lines)
        if line.text == text and line.sign == sign
    )
    places = [place for place in matches if place is not None]

    def distance(place: range) -> int:
        return abs(span_of(comment.side, lines[place.start : place.stop])[0] - comment.start)

    return min(places, key=distance, default=None)


def _match(lines: Sequence[Numbered], start: int, wanted: list[str]) -> range | None:
    """Return the lines from `start` on that are the wanted ones; remarks between them are ignored."""
    at = start
    for text in wanted:
        while at < len(lines) and lines[at].sign == "\\":
            at += 1
        if at == len(lines) or lines[at].sign + lines[at].text != text:
            return None
        at += 1
    return range(start, at)


def span_of(side: DiffSide, lines: Sequence[Numbered]) -> tuple[int, int]:
    """Return the first and the last number that lines have on a side."""
    numbers = [line.new if side == DiffSide.NEW else line.old for line in lines]
    real = [number for number in numbers if number]
    return min(real), max(real)


_COMMENTS = TypeAdapter(list[Comment])


class CommentsOnDisk:
    """The comments of one replica that have not been sent."""

    def __init__(self, disk: ClientDisk, replica_id: UUID) -> None:
        self._disk = disk
        self._replica_id = replica_id

    def read(self) -> list[Comment]:
        """Return the comments of an earlier cockpit, oldest first."""
        text = self._disk.comments(self._replica_id)
        if not text:
            return []
        try:
            return _COMMENTS.validate_json(text)
        except ValidationError:
            self._disk.set_comments_aside(self._replica_id)
            return []

    def write(self, comments: list[Comment]) -> None:
        """Write all comments.

        Raises:
            OSError: it cannot be written.
        """
        text = _COMMENTS.dump_json(comments).decode() if comments else ""
        self._disk.save_comments(self._replica_id, text)


MOST_QUOTED = 12
"""Longer quotations are shortened in the middle."""


def message_of(
    comments: Sequence[Comment], outdated: set[str], summary: str, *, several: bool
) -> str:
    """Return the message to send. `outdated`: keys of comments whose lines changed since.

    `several`: there is more than one repository, so each place names its own.
    """
    parts = [summary.strip()] if summary.strip() else []
    parts.append(
        "A comment on your changes:" if len(comments) == 1 else "Comments on your changes:"
    )
    for number, comment in enumerate(_in_order(comments), 1):
        place = f"`{_escaped(comment.path)}`"
        if several:
            place += f" in `{_escaped(comment.repository)}`"
        since = " (changed since)" if comment.key in outdated else ""
        head = f"{number}. {place}, {comment.where}{since}"
        quotation = [_quotation(comment.quoted)] if comment.quoted else []
        parts += [head, *quotation, comment.text.strip()]
    return "\n\n".join(parts)


def _in_order(comments: Sequence[Comment]) -> list[Comment]:
    return sorted(comments, key=lambda one: (one.repository, one.path, one.start, one.created_at))


def _quotation(lines: list[str]) -> str:
    if len(lines) > MOST_QUOTED:
        half = MOST_QUOTED // 2
        left_out = len(lines) - 2 * half
        lines = [*lines[:half], f"... {left_out} lines ...", *lines[-half:]]
    ticks = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, ticks + 1)
    return "\n".join([f"{fence}diff", *lines, fence])


def _escaped(path: str) -> str:
    return path.replace("`", "'").replace("\n", " ")


def resolve_message(
    repository: str, base: str, strategy: str, files: Sequence[str], *, started: bool
) -> str:
    """Return a message that asks to resolve conflicts with the base branch.

    Args:
        strategy: `merge`, `rebase`, or `stash`, which has always started.
        started: it waits in the work tree; otherwise the agent has to start it.
    """
    named = "\n".join(f"- `{_escaped(path)}`" for path in files)
    rebase = strategy == "rebase"
    onto = f"onto `{_escaped(base)}`" if rebase else f"of `{_escaped(base)}`"
    if strategy == "stash":
        head = (
            f"Stashed changes in `{_escaped(repository)}` conflict with an update in these files:"
        )
        steps = "Resolve them"
    elif started:
        head = f"A {strategy} in `{_escaped(repository)}` stopped at conflicts in these files:"
        steps = "Resolve them"
    else:
        head = f"A {strategy} {onto} in `{_escaped(repository)}` conflicts in these files:"
        steps = f"Run `git {strategy} origin/{_escaped(base)}` and resolve the conflicts"
    ends = {
        "merge": "commit the merge",
        "rebase": "continue the rebase until it is complete",
        "stash": "drop the stash `autostash`",
    }
    end = ends[strategy]
    return f"{head}\n\n{named}\n\n{steps} so that both sides keep their meaning, run the tests, and {end}."
