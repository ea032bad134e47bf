"""The canvas of a replica: files that agents produce, and files that are put there for them."""

from urllib.parse import quote
from uuid import UUID

from quarterdeck.client.connection import Connection
from quarterdeck.wire.canvas import CanvasFile, CanvasItem, CanvasList, CanvasUpload


class Canvas:
    """`/v1/workspaces/{id}/canvas`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self, replica_id: UUID) -> list[CanvasItem]:
        """Every file. Raises `NotActive`."""
        return (await self._connection.call("GET", _path(replica_id), CanvasList)).items

    async def get(self, replica_id: UUID, filename: str) -> CanvasFile:
        """One file; without its content when it is too large. Raises `NotActive`."""
        path = f"{_path(replica_id)}/{quote(filename)}"
        return await self._connection.call("GET", path, CanvasFile)

    async def upload(self, replica_id: UUID, filename: str, content: bytes) -> CanvasUpload:
        """Puts a file there, at most 5 MB.

        A replica that is not active gets it when it starts; then the answer has an `upload_id`,
        which a message can name.

        Raises:
            PayloadTooLarge: it is larger.
            Conflict: the replica has failed.
        """
        return await self._connection.upload(_path(replica_id), CanvasUpload, filename, content)


def _path(replica_id: UUID) -> str:
    return f"/v1/workspaces/{replica_id}/canvas"
