"""Searching and reading the files of a workspace's repositories (operation 13; docs/interface.md 6)."""

from enum import StrEnum

from quarterdeck.wire.base import CamelRecord, Timestamp

MOST_FILES = 5_000
"""Files on a page at most."""
LONGEST_PATH = 4_096
"""Longest path of a query, in characters."""
DEFAULT_FILES = 100

CONTENT_LIMIT = 1 << 20
"""Most bytes of a file that are sent: 1 MiB."""


INDEX_LIMIT = 200_000
"""Most files of a workspace that are indexed."""


class FileStatus(StrEnum):
    """How a file differs from the last commit."""

    CHANGED = "changed"
    UNTRACKED = "untracked"
    UNCHANGED = "unchanged"


class FoundFile(CamelRecord):
    """One file. A higher `score` is a better match; 0 when nothing was searched for."""

    repo_name: str
    """Repository of the file."""
    path: str
    """Path in the repository."""
    display_path: str
    """Path to show."""
    status: str
    """`changed`, `untracked` or `unchanged` since the last commit."""
    score: float
    """How well it matches; higher is better."""
    indexed_at: Timestamp
    """When its repository was indexed."""
    stale: bool
    """Whether the index may be out of date."""


class FoundFiles(CamelRecord):
    """A page of a search, best match first."""

    files: list[FoundFile]
    """Files on this page."""
    next_cursor: str | None
    """`cursor` of the next page; null on the last one."""
    indexed_at: Timestamp
    """When the files were indexed."""
    stale: bool
    """Whether the index may be out of date."""
    refreshing: bool
    """Whether a new index is being built."""
    truncated: bool
    """Whether the index leaves out files because there are too many."""
    unsupported: bool | None = None
    """True when the engine of the replica cannot list files."""


class FileContent(CamelRecord):
    """Answer of reading a file: text in `content`, anything else in `base64`.

    `truncated` when the file is longer than what is sent of it.
    """

    content: str | None = None
    """Content, when it is text."""
    base64: str | None = None
    """Content in base64, when it is not text."""
    size_bytes: int
    """Size of the whole file in bytes."""
    truncated: bool
    """Whether only the beginning is here."""
