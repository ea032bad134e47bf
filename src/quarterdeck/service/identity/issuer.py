"""User tokens of an outside identity provider."""

import asyncio
from typing import Any

import jwt

from quarterdeck.service.identity.jwks import KeySet, public_key
from quarterdeck.service.identity.settings import IssuerSettings
from quarterdeck.service.identity.tokens import RefusedTokenError
from quarterdeck.service.records.users import Person

LEEWAY_SECONDS = 30
"""How far the clocks of two machines may differ."""

SUBJECT_LIMIT = 200
EMAIL_LIMIT = 320
NAME_LIMIT = 200


class OutsideIssuer:
    """Reads tokens of one issuer, checked against its published keys."""

    def __init__(self, settings: IssuerSettings, keys: KeySet) -> None:
        self.settings = settings
        self._keys = keys

    async def person_of(self, token: str) -> Person:
        """Who a token was issued to.

        Raises:
            RefusedTokenError: it is not valid.
            ApiError: INTERNAL_ERROR: the issuer's keys cannot be fetched.
        """
        try:
            header = jwt.get_unverified_header(token)
            kid, algorithm = header.get("kid"), header.get("alg")
            key = await self._keys.find(kid)
            if key is None or not isinstance(algorithm, str):
                raise RefusedTokenError("No key of the issuer has signed it")
            # Checking a signature takes long enough to hold others up.
            claims = await asyncio.to_thread(self._claims, token, public_key(key, algorithm))
        except jwt.PyJWTError as e:
            raise RefusedTokenError(str(e)) from e
        return self._person(claims)

    def _claims(self, token: str, key: jwt.PyJWK) -> dict[str, Any]:
        options: Any = {"require": ["exp", "sub", "iss"]}
        return jwt.decode(
            token,
            key,
            [key.algorithm_name],
            options,
            audience=self.settings.audience,
            issuer=self.settings.issuer,
            leeway=LEEWAY_SECONDS,
        )

    def _person(self, claims: dict[str, Any]) -> Person:
        subject = claims["sub"]
        if not subject or len(subject) > SUBJECT_LIMIT or not subject.isprintable():
            raise RefusedTokenError("The subject cannot be stored")
        email, name = claims.get("email"), claims.get("name")
        return Person(
            self.settings.issuer, subject, _text(email, EMAIL_LIMIT), _text(name, NAME_LIMIT)
        )


def _text(value: Any, limit: int) -> str | None:
    """A claim that can be shown, or None."""
    usable = isinstance(value, str) and value.isprintable() and 0 < len(value) <= limit
    return value if usable else None
