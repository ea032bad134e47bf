"""The configuration file: which services there are.

default = "work"                      # optional; without it the embedded service

[profiles.work]
url = "https://service.example"       # or: socket = "/run/user/1000/tunnel.sock"
key_command = ["pass", "show", "qd"]  # or: key_variable = "WORK_KEY"; or: key = "sk_..."
organization = "3f0e..."              # only with a user token

[profiles.work.names]                 # only where a service renames the wire's neutral names
version_header = "X-Service-Api-Version"
version = "2026-10-07"
organization_header = "Service-Org-Id"
transcript_key = "agentAspTranscript"

[service]                             # what qd serve does; its options come first
issuer = "https://id.example/"        # take user tokens of this identity provider
jwks_url = "https://id.example/keys"
audience = "quarterdeck"
new_users = "member"                  # or "admin"; without it they are members of nothing
requests_per_minute = 600             # per key or user; without it no bound
"""

import tomllib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from quarterdeck.cli.errors import ConfigFault

Text = Annotated[str, Field(min_length=1)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Names(_Table):
    """Neutral names that this service calls otherwise."""

    version_header: Text | None = None
    version: Text | None = None
    organization_header: Text | None = None
    transcript_key: Text | None = None


class Profile(_Table):
    """One service: where it is and how its key is found."""

    url: Annotated[str, Field(pattern=r"^https?://[^\s/]+")] | None = None
    socket: Text | None = None
    key: Text | None = None
    key_command: Annotated[list[Text], Field(min_length=1)] | None = None
    key_variable: Text | None = None
    organization: Text | None = None
    names: Names = Names()

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if (self.url is None) == (self.socket is None):
            raise ValueError("give one of url and socket")
        given = [self.key, self.key_command, self.key_variable]
        if len([way for way in given if way is not None]) > 1:
            raise ValueError("give one of key, key_command and key_variable")
        return self


class Service(_Table):
    """What the service here does."""

    issuer: Text | None = None
    jwks_url: Text | None = None
    audience: Text | None = None
    new_users: Literal["member", "admin"] | None = None
    requests_per_minute: Annotated[int, Field(ge=1)] | None = None


class Config(_Table):
    """The whole file."""

    default: Text | None = None
    profiles: dict[str, Profile] = {}
    service: Service = Service()

    @model_validator(mode="after")
    def _default_exists(self) -> Self:
        if self.default is not None and self.default not in self.profiles:
            raise ValueError(f"default names the profile {self.default!r}, which is not there")
        return self


def read_config(path: Path) -> Config:
    """The file's content; an empty one when there is no file.

    Raises:
        ConfigFault: it cannot be read; the message names the file and the place in it.
    """
    try:
        return Config.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return Config()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        raise ConfigFault(f"{path} cannot be read: {e}.", "Correct the file or remove it.") from e
    except ValidationError as e:
        raise ConfigFault(f"{path}: {_first(e)}.", "Correct what is named.") from e


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    text = first["msg"].removeprefix("Value error, ")
    return f"{where}: {text}" if where else text
