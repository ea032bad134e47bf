"""One file of a replica as it can be looked at: text, or what it is instead."""

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.wire.files import FileContent

if TYPE_CHECKING:
    from quarterdeck.store.files import FinderOwner


@dataclass(frozen=True)
class OpenFile:
    """A file as it was read. `text` is None for one that is no text; `data` is what was sent."""

    repo_name: str
    path: str
    size: int
    truncated: bool
    text: str | None
    data: bytes

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]


async def read_file(owner: "FinderOwner", replica_id: UUID, repo_name: str, path: str) -> OpenFile:
    """Reads a file's beginning, as far as it is sent.

    Raises:
        ClientError: not active, gone, or unreachable.
    """
    content = await owner.client.files.content(replica_id, repo_name, path)
    return open_file(repo_name, path, content)


def open_file(repo_name: str, path: str, content: FileContent) -> OpenFile:
    """A file from the service's answer."""
    text = content.content
    data = text.encode(errors="surrogatepass") if text is not None else _decoded(content.base64)
    return OpenFile(repo_name, path, content.size_bytes, content.truncated, text, data)


def _decoded(text: str | None) -> bytes:
    try:
        return base64.b64decode(text or "", validate=True)
    except (binascii.Error, ValueError):
        # A service that says nonsense has sent nothing that could be shown.
        return b""


def size_words(size: int) -> str:
    """A size as people say it."""
    if size < 1024:
        return f"{size} bytes" if size != 1 else "1 byte"
    number = float(size)
    for unit in ("KB", "MB", "GB", "TB"):
        number /= 1024
        if number < 1024 or unit == "TB":
            return f"{number:.1f} {unit}" if number < 10 else f"{number:.0f} {unit}"
    raise AssertionError  # the loop ends by itself


def content_words(file: OpenFile) -> str:
    """What must be known of a file beside its text; empty when it is all there."""
    if file.text is None:
        shown = " Only its beginning was sent." if file.truncated else ""
        return f"Not a text ({size_words(file.size)}).{shown}"
    if file.truncated:
        return f"The first {size_words(len(file.data))} of {size_words(file.size)}."
    return ""
