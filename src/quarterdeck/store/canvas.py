"""The canvas of a replica: its items, and uploads that wait.

Items are read from the engine, so only while the replica is active. Uploads are accepted in every
state but a failed one, and stored at once, or when the replica starts.
"""

import base64
import binascii
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.wire.canvas import CanvasFile, CanvasItem, CanvasKind, CanvasUpload

if TYPE_CHECKING:
    from quarterdeck.store.app_state import AppState


@dataclass(frozen=True)
class OpenItem:
    """An item with its content. `text` is None when it is not text, `data` when it is too large."""

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
class CanvasState:
    """The items of one replica as last read, and the waiting uploads of this cockpit."""

    owner: "AppState"
    replica_id: UUID
    items: list[CanvasItem] | None = None
    """None before they were read."""
    waiting: list[CanvasUpload] = field(default_factory=list[CanvasUpload])

    async def read(self) -> None:
        """Read the list. Once it can be read the replica has started, so no upload waits any more.

        Raises:
            ClientError: not active, or unreachable; the items read before stay.
        """
        self.items = await self.owner.client.canvas.list(self.replica_id)
        self.waiting = []

    async def open(self, filename: str) -> OpenItem:
        """Read an item.

        Raises:
            ClientError: not active, deleted, or unreachable.
        """
        return open_item(await self.owner.client.canvas.get(self.replica_id, filename))

    async def upload(self, filename: str, data: bytes) -> CanvasUpload:
        """Upload a file, now or when the replica starts.

        Raises:
            ClientError: too large, failed, or unreachable.
        """
        upload = await self.owner.client.canvas.upload(self.replica_id, filename, data)
        if upload.upload_id is not None:
            self.waiting.append(upload)
        return upload


def open_item(file: CanvasFile) -> OpenItem:
    """Return an item from the service's answer."""
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
        # The service sent invalid base64.
        return None
