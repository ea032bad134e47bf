"""Comments as one message to the agent."""

import re
from collections.abc import Sequence

from quarterdeck.store.changes_comments import Comment

MOST_QUOTED = 12
"""Lines of a longer quotation are left out in its middle; the numbers say which they are."""


def message_of(
    comments: Sequence[Comment], outdated: set[str], summary: str, *, several: bool
) -> str:
    """What is sent. `outdated`: keys of comments whose lines changed since.

    `several`: there is more than one repository, so each place says which it is in.
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
    ticks = max((len(found) for line in lines for found in re.findall("`+", line)), default=0)
    fence = "`" * max(3, ticks + 1)
    return "\n".join([f"{fence}diff", *lines, fence])


def _escaped(path: str) -> str:
    return path.replace("`", "'").replace("\n", " ")
