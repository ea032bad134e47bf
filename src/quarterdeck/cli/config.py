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

[host-a]                              # a source host; [host-b] likewise
webhook_secret_file = "host-a.secret" # or: webhook_secret = "..."; without it no webhook is taken
api_url = "https://api.host.example"  # with a token: checks are written there
token_file = "host-a.token"           # or: token = "..."

[agents.robot]                        # an agent of your own, which speaks the Agent Client Protocol
name = "Robot"
command = ["robot", "--acp"]          # a name on the PATH or an absolute path, then arguments
keys = ["ROBOT_API_KEY"]              # optional, like all that follows; `OwnAgent` lists the rest
shown = ["~/robot/models"]            # what else of this machine replicas see, read-only

[cockpit]                             # all optional; the cockpit's settings page writes these
theme = "dark"                        # or "light"; or "ansi": the terminal's own 16 colors
motion = "auto"                       # reduced over SSH; or "reduced": nothing moves; or "full"
mouse = true
notices = "osc"                       # or "bell", or "off": when a replica needs you or is done

[keys]                                # other keys for actions; the help names their ids
"replica.delete" = "D"
"replica.open" = ["enter", "z"]
"app.quit" = []                       # no key at all
"""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from quarterdeck.cli.agent_tables import AgentId, AgentTable, check_ids
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


class SourceHost(_Table):
    """A host of repositories: whose webhooks are taken, and where checks are written."""

    webhook_secret: Text | None = None
    webhook_secret_file: Text | None = None
    api_url: Annotated[str, Field(pattern=r"^https?://[^\s/]+")] | None = None
    token: Text | None = None
    token_file: Text | None = None

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        for name in ("webhook_secret", "token"):
            if getattr(self, name) is not None and getattr(self, f"{name}_file") is not None:
                raise ValueError(f"give one of {name} and {name}_file")
        return self


class Config(_Table):
    """The whole file."""

    default: Text | None = None
    profiles: dict[str, Profile] = {}
    service: Service = Service()
    host_a: Annotated[SourceHost, Field(alias="host-a")] = SourceHost()
    host_b: Annotated[SourceHost, Field(alias="host-b")] = SourceHost()
    agents: Annotated[dict[AgentId, AgentTable], AfterValidator(check_ids)] = {}
    # Read by `cockpit_file`: the cockpit opens whatever is in them.
    cockpit: dict[str, Any] = {}
    keys: dict[str, Any] = {}

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
