"""The canvas of a replica: what lies on it, and what waits to be put there.

An item is read from the engine, so only while the replica is active. An upload is taken in every
state but a failed one: at once, or when the replica starts.
"""

import base64
import binascii
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from quarterdeck.wire.canvas import CanvasFile, CanvasItem, CanvasKind, CanvasUpload

if TYPE_CHECKING:
    from quarterdeck.client.client import Client


class CanvasOwner(Protocol):
    """What a canvas needs of the deck."""

    @property
    def client(self) -> "Client": ...


@dataclass(frozen=True)
class OpenItem:
    """An item with its content. `text` is None for what is no text, `data` for what is too large."""

    filename: str
    kind: str
    mime_type: str
    size: int
    text: str | None
    data: bytes | None

    @property
    def is_markdown(self) -> bool:
        return self.kind == CanvasKind.MARKDOWN and self.text is not None


@dataclass
class CanvasShelf:
    """The items of one replica as they were read last, and the uploads of this cockpit that wait."""

    owner: CanvasOwner
    replica_id: UUID
    items: list[CanvasItem] | None = None
    """None before they were read."""
    waiting: list[CanvasUpload] = field(default_factory=list[CanvasUpload])

    async def read(self) -> None:
        """Reads the list. It can be read, so the replica has started, and nothing waits any more.

        Raises:
            ClientError: not active, or unreachable; what was read before stays.
        """
        self.items = await self.owner.client.canvas.list(self.replica_id)
        self.waiting = []

    async def open(self, filename: str) -> OpenItem:
        """Reads an item.

        Raises:
            ClientError: not active, gone, or unreachable.
        """
        return open_item(await self.owner.client.canvas.get(self.replica_id, filename))

    async def upload(self, filename: str, data: bytes) -> CanvasUpload:
        """Puts a file there, or leaves it to be put there when the replica starts.

        Raises:
            ClientError: too large, failed, or unreachable.
        """
        upload = await self.owner.client.canvas.upload(self.replica_id, filename, data)
        if upload.upload_id is not None:
            self.waiting.append(upload)
        return upload


def open_item(file: CanvasFile) -> OpenItem:
    """An item from the service's answer."""
    return OpenItem(
        filename=file.filename,
        kind=file.kind,
        mime_type=file.mime_type,
        size=file.size_bytes,
        text=file.content,
        data=_data(file),
    )


def _data(file: CanvasFile) -> bytes | None:
    if file.content is not None:
        return file.content.encode(errors="surrogatepass")
    if file.base64 is None:
        return None
    try:
        return base64.b64decode(file.base64, validate=True)
    except (binascii.Error, ValueError):
        # A service that says nonsense has sent nothing that could be kept.
        return None
