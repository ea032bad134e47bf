"""Permissions of replicas."""

from uuid import UUID

from quarterdeck.client.connection import HttpConnection
from quarterdeck.wire.permissions import ChangePermissions, ReplicaPermissions


class PermissionsApi:
    """`/v1/replica/{id}/permissions`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def get(self, replica_id: UUID) -> ReplicaPermissions:
        """Return which permission requests of its agents are answered without a person."""
        return await self._connection.call("GET", _path(replica_id), ReplicaPermissions)

    async def change(self, replica_id: UUID, change: ChangePermissions) -> ReplicaPermissions:
        """Change its policy, or add and remove rules; what is not set stays. Effective at once.

        Raises:
            InvalidRequestError: it would have too many rules.
        """
        return await self._connection.call(
            "PATCH", _path(replica_id), ReplicaPermissions, body=change
        )


def _path(replica_id: UUID) -> str:
    return f"/v1/replica/{replica_id}/permissions"
