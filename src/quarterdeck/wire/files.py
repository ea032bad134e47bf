"""Searching and reading the files of a workspace's repositories (operation 13; INTERFACE 6)."""

from enum import StrEnum

from quarterdeck.wire.base import CamelRecord, Timestamp

MOST_FILES = 5_000
"""Files on a page at most."""
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
    path: str
    display_path: str
    status: str
    score: float
    indexed_at: Timestamp
    stale: bool


class FoundFiles(CamelRecord):
    """A page of a search, best match first."""

    files: list[FoundFile]
    next_cursor: str | None
    indexed_at: Timestamp
    stale: bool
    refreshing: bool
    truncated: bool
    unsupported: bool | None = None


class FileContent(CamelRecord):
    """Answer of reading a file: text in `content`, anything else in `base64`.

    `truncated` when the file is longer than what is sent of it.
    """

    content: str | None = None
    base64: str | None = None
    size_bytes: int
    truncated: bool
