"""API keys, a user's own or an organization's."""

from collections.abc import AsyncGenerator
from uuid import UUID

from quarterdeck.client.connection import Connection
from quarterdeck.wire.api_keys import ApiKey, ApiKeyList, ApiKeyMade, CreateApiKey
from quarterdeck.wire.base import Success

OWN = "/v1/user/api-keys"
SHARED = "/v1/organization/api-keys"
MOST_PER_PAGE = 100


class ApiKeys:
    """`/v1/user/api-keys`, or `/v1/organization/api-keys`, which takes an admin."""

    def __init__(self, connection: Connection, path: str = OWN) -> None:
        self._connection = connection
        self._path = path

    async def create(self, name: str) -> ApiKeyMade:
        """Makes a key; its text is told this once. A user's own needs a user token.

        Raises:
            Unauthorized: an API key was shown where a user token is needed.
            Forbidden: not an admin of the organization.
        """
        body = CreateApiKey(name=name)
        return await self._connection.call("POST", self._path, ApiKeyMade, body=body)

    async def list(self, page: int | None = None, limit: int | None = None) -> ApiKeyList:
        """One page (counted from 1, 1 to 100 keys, by default 10), newest first."""
        query = {"page": page, "limit": limit}
        return await self._connection.call("GET", self._path, ApiKeyList, query=query)

    async def all(self) -> AsyncGenerator[ApiKey]:
        """Every key once, newest first, page by page."""
        seen: set[UUID] = set()
        page = 1
        while True:
            found = await self.list(page, MOST_PER_PAGE)
            for key in found.api_keys:
                if key.id not in seen:
                    seen.add(key.id)
                    yield key
            if page >= found.total_pages or not found.api_keys:
                return
            page += 1

    async def delete(self, key_id: UUID) -> None:
        """Takes a key away, at once."""
        await self._connection.call("DELETE", f"{self._path}/{key_id}", Success)
