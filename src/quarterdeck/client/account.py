"""Who asks, and where they belong."""

from quarterdeck.client.connection import Connection
from quarterdeck.wire.users import Organization, OrganizationList, User, UserProfile


class Account:
    """`/v1/user/profile` and `/v1/organizations`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def profile(self) -> User:
        """The user of the key or token. Raises `Unauthorized` with an organization key."""
        return (await self._connection.call("GET", "/v1/user/profile", UserProfile)).user

    async def organizations(self) -> list[Organization]:
        """A token's organizations, with the role in each; of a key, the one that it fixes."""
        answer = await self._connection.call("GET", "/v1/organizations", OrganizationList)
        return answer.organizations
