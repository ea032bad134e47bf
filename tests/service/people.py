"""Organizations, users and bearers of every kind, for tests of who may do what."""

from dataclasses import dataclass
from uuid import uuid4

from sqlalchemy import Connection

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.environments.rows import add_global_environment
from quarterdeck.service.first_start import owner_of
from quarterdeck.service.formats import now_text
from quarterdeck.service.identity.authentication import hash_of, new_key, shown_prefix
from quarterdeck.service.identity.rows import (
    KeyScope,
    Person,
    add_key,
    add_member,
    add_organization,
    add_user,
    only_organization,
)
from quarterdeck.service.identity.tokens import USE, Tokens


@dataclass(frozen=True)
class People:
    """One installation's organization with its owner and a member, and a second one."""

    organization: str
    owner: str
    member: str
    other: str
    stranger: str
    """An admin of the other organization alone."""


async def settle(context: ServiceContext) -> People:
    """Stores them."""
    owner = await owner_of(context.database)

    def run(c: Connection) -> People:
        now = now_text()
        organization = only_organization(c)
        assert organization is not None
        other = add_organization(c, "Other", "9")
        add_global_environment(c, other, now)
        member = add_user(c, Person("test", str(uuid4()), "m@example.org", "Mem"), now)
        stranger = add_user(c, Person("test", str(uuid4())), now)
        add_member(c, organization, member, "member", now)
        add_member(c, other, stranger, "admin", now)
        return People(organization, owner, member, other, stranger)

    return await context.database.write(run)


async def key_of(context: ServiceContext, organization: str, user: str | None = None) -> str:
    """A new key; an organization's without a user."""
    key = new_key()
    scope = KeyScope(organization, user)
    await context.database.write(
        lambda c: add_key(c, scope, "Test", shown_prefix(key), hash_of(key), now_text())
    )
    return key


def token_of(context: ServiceContext, user: str) -> str:
    """A token that the service issued."""
    return Tokens(context.vault.derived(USE)).issue(user)


def bearing(bearer: str, organization: str | None = None) -> dict[str, str]:
    """Headers."""
    named = {} if organization is None else {"Service-Org-Id": organization}
    return {"Authorization": f"Bearer {bearer}", **named}
