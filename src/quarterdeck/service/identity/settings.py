"""What an operator decides about who is let in."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class IssuerSettings:
    """An outside identity provider.

    `jwks_url` is https, or http on a loopback address. Without an `audience` only tokens that name
    none are taken. `new_users` is the role that a user seen for the first time gets in this
    installation's organization, `admin` or `member`; None makes them a member of nothing.
    """

    issuer: str
    jwks_url: str
    audience: str | None = None
    new_users: str | None = None


@dataclass(frozen=True)
class IdentitySettings:
    """`requests_per_minute` is a bound per key or user; None sets none."""

    issuer: IssuerSettings | None = None
    requests_per_minute: int | None = None


NO_SETTINGS = IdentitySettings()


@dataclass(frozen=True)
class DeviceSettings:
    """How a device asks for a token; in seconds."""

    expires_in: int = 600
    interval: int = 5
    waiting: int = field(default=100)
    """Requests that may wait for approval at one time."""
