"""Who asks, and where they belong (INTERFACE 9)."""

from quarterdeck.wire.base import Id, Record, Timestamp


class User(Record):
    """A person. `email` and `name` are what the issuer of their tokens tells."""

    id: Id
    email: str | None = None
    name: str | None = None
    created_at: Timestamp


class UserProfile(Record):
    """Answer of `GET /v1/user/profile`."""

    user: User


class Organization(Record):
    """An organization and the caller's role in it, `admin` or `member`."""

    id: Id
    name: str
    role: str


class OrganizationList(Record):
    """Answer of `GET /v1/organizations`."""

    organizations: list[Organization]
