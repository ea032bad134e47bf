"""Full-text search in all chats (docs/interface.md 4.7)."""

from typing import Literal

from quarterdeck.wire.base import Id, Record, Timestamp

LONGEST_QUERY = 200
MOST_HITS, DEFAULT_HITS = 100, 20


class SearchHit(Record):
    """A message or a tool call that has all words of the query."""

    workspace_id: Id
    """Id of the replica."""
    workspace_name: str
    """Name of the replica."""
    chat_id: Id
    """Id of the chat."""
    chat_title: str | None = None
    """Title of the chat."""
    role: Literal["user", "agent", "tool"]
    """Whose text it is: a person's message, the agent's, or the title of a tool call."""
    history_index: int
    """Place of the text's first event in the history of the chat."""
    ts: Timestamp
    """When it was written."""
    excerpt: str
    """The part of the text around the first match, on one line."""
    matches: list[tuple[int, int]] = []
    """Where matches begin and end in the excerpt, in characters."""


class SearchHits(Record):
    """A page of what was found, newest first."""

    hits: list[SearchHit]
    """What was found."""
    next_cursor: str | None = None
    """`cursor` of the next page; null on the last."""
