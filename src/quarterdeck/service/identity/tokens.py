"""User tokens that this service issues: short-lived JWTs, signed with a key of the vault."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import jwt

from quarterdeck.wire.base import utc_now

ISSUER = "quarterdeck"
AUDIENCE = "quarterdeck"
ALGORITHM = "HS256"
USE = "user tokens"
"""Which of the vault's keys signs them."""
LIFETIME_SECONDS = 3_600


class RefusedTokenError(Exception):
    """A token is not accepted. `args[0]` is the reason, which may be told."""


class Tokens:
    """Issues and reads tokens; whoever holds the same vault reads them too."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def issue(self, user_id: str) -> str:
        """A token of a user, valid from now on for `LIFETIME_SECONDS`."""
        now = utc_now()
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": user_id,
            "iat": now,
            "exp": now + timedelta(seconds=LIFETIME_SECONDS),
            "jti": str(uuid4()),
        }
        return jwt.encode(claims, self._key, ALGORITHM)

    def user_of(self, token: str) -> str:
        """The id of the user that a token was issued to.

        Raises:
            RefusedTokenError: it is not valid.
        """
        options: Any = {"require": ["exp", "iat", "sub"]}
        try:
            claims = jwt.decode(
                token, self._key, [ALGORITHM], options, audience=AUDIENCE, issuer=ISSUER
            )
            return str(UUID(claims["sub"]))
        except jwt.InvalidTokenError as e:
            raise RefusedTokenError(str(e)) from e
        except ValueError as e:
            raise RefusedTokenError("The subject is no user of this service") from e


def issuer_of(token: str) -> str | None:
    """Who a token says has issued it. Nothing of it is checked.

    Raises:
        RefusedTokenError: it is no token.
    """
    options: Any = {"verify_signature": False}
    try:
        issuer = jwt.decode(token, options=options).get("iss")
    except jwt.InvalidTokenError as e:
        raise RefusedTokenError(str(e)) from e
    return issuer if isinstance(issuer, str) else None


def is_token(bearer: str) -> bool:
    """Whether a bearer has the form of a token; keys and secrets have no dots."""
    return bearer.count(".") == 2
