"""Ports of a replica that can be looked at."""

from uuid import UUID

from quarterdeck.client.connection import Connection
from quarterdeck.wire.events import Preview
from quarterdeck.wire.previews import OpenPreview, PreviewAnswer, PreviewClosed, PreviewList


class Previews:
    """`/v1/workspaces/{id}/previews`, and `/v1/previews` for who is inside."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self, replica_id: UUID) -> list[Preview]:
        """All of them, in every state of the replica."""
        return (await self._connection.call("GET", _path(replica_id), PreviewList)).previews

    async def close(self, replica_id: UUID, port: int) -> None:
        """Makes a port an ordinary one again."""
        await self._connection.call("DELETE", f"{_path(replica_id)}/{port}", PreviewClosed)

    async def open_own(self, port: int) -> Preview:
        """From within a workspace, with its engine's secret: makes a port a preview.

        Raises:
            Conflict: it is one already.
        """
        body = OpenPreview(port=port)
        answer = await self._connection.call("POST", "/v1/previews", PreviewAnswer, body=body)
        return answer.preview

    async def close_own(self, port: int) -> None:
        """From within a workspace: makes a port an ordinary one again."""
        await self._connection.call("DELETE", f"/v1/previews/{port}", PreviewClosed)


def _path(replica_id: UUID) -> str:
    return f"/v1/workspaces/{replica_id}/previews"
