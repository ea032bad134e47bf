"""Keys of the providers behind coding agents."""

from quarterdeck.client.connection import Connection
from quarterdeck.wire.base import Success
from quarterdeck.wire.credentials import CredentialSet, CredentialStatus, SetCredential


class Credentials:
    """`/v1/{provider}/user/credentials`, and `/v1/{provider}/credentials` for the organization."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self, provider: str, *, shared: bool = False) -> CredentialStatus:
        """Whether there is a key, and its masked text.

        `shared` means the organization's, which is its admins' matter (`Forbidden`).
        """
        return await self._connection.call("GET", _path(provider, shared), CredentialStatus)

    async def set(self, provider: str, key: str, *, shared: bool = False) -> CredentialSet:
        """Stores a key in place of the one before; workspaces started from now on get it."""
        return await self._connection.call(
            "POST", _path(provider, shared), CredentialSet, body=SetCredential(api_key=key)
        )

    async def delete(self, provider: str, *, shared: bool = False) -> None:
        """Removes a key. Raises `NotFound` when there is none."""
        await self._connection.call("DELETE", _path(provider, shared), Success)


def _path(provider: str, shared: bool) -> str:
    return f"/v1/{provider}/credentials" if shared else f"/v1/{provider}/user/credentials"
