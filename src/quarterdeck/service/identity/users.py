"""Users: found by their tokens, and their roles in organizations."""

from collections.abc import Callable
from hashlib import sha256
from time import monotonic

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.service.auth import Role
from quarterdeck.service.db.database import Database
from quarterdeck.service.identity.issuer import OutsideIssuer
from quarterdeck.service.identity.remembered import Remembered
from quarterdeck.service.identity.tokens import ISSUER as OWN
from quarterdeck.service.identity.tokens import RefusedTokenError, Tokens, issuer_of
from quarterdeck.service.moments import now_text
from quarterdeck.service.records.organizations import only_organization
from quarterdeck.service.records.users import (
    Person,
    add_member,
    add_user,
    find_user,
    known_user,
    rename_user,
    role_of,
)


class Users:
    """Who shows a token. What was found is remembered for a few seconds."""

    def __init__(
        self,
        database: Database,
        tokens: Tokens,
        outside: OutsideIssuer | None = None,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self._database = database
        self._tokens = tokens
        self._outside = outside
        self._users: Remembered[bytes, str] = Remembered(now)
        self._roles: Remembered[tuple[str, str], Role] = Remembered(now)

    async def user_of(self, token: str) -> str:
        """The id of the user that a token stands for; one of the outside issuer may be new.

        Raises:
            RefusedTokenError: it is not valid, or its user is gone.
            ApiError: INTERNAL_ERROR: the outside issuer's keys cannot be fetched.
        """
        digest = sha256(token.encode()).digest()
        found = await self._users.get(digest, lambda: self._look(token))
        if found is None:
            raise RefusedTokenError("Its user is gone")
        return found

    async def role_of(self, user_id: str, organization_id: str) -> Role | None:
        """A user's role in an organization; None who is no member."""

        async def look() -> Role | None:
            read = self._database.read
            role = await read(lambda c: role_of(c, organization_id, user_id))
            return None if role is None else Role(role)

        return await self._roles.get((user_id, organization_id), look)

    def forget(self) -> None:
        """Makes the next token be looked at again; call after a membership was taken away."""
        self._users.forget()
        self._roles.forget()

    async def _look(self, token: str) -> str | None:
        issuer = issuer_of(token)
        if issuer == OWN:
            user_id = self._tokens.user_of(token)
            found = await self._database.read(lambda c: find_user(c, user_id))
            return None if found is None else user_id
        if self._outside is None or issuer != self._outside.settings.issuer:
            raise RefusedTokenError("Its issuer is not known here")
        person = await self._outside.person_of(token)
        return await self._known(person, self._outside.settings.new_users)

    async def _known(self, person: Person, role: str | None) -> str:
        found = await self._database.read(lambda c: known_user(c, person))
        if found is not None and found[1]:
            return found[0]
        try:
            return await self._database.write(lambda c: _store(c, person, role))
        except IntegrityError:
            # Another request of the same user was first.
            return await self._database.write(lambda c: _store(c, person, role))


def _store(connection: Connection, person: Person, role: str | None) -> str:
    found = known_user(connection, person)
    if found is not None:
        rename_user(connection, found[0], person)
        return found[0]
    now = now_text()
    user_id = add_user(connection, person, now)
    organization_id = only_organization(connection)
    if role is not None and organization_id is not None:
        add_member(connection, organization_id, user_id, role, now)
    return user_id
