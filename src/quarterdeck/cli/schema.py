"""The configuration file.

default = "work"                      # optional; without it the embedded service

[profiles.work]
url = "https://service.example"       # or: socket = "/run/user/1000/tunnel.sock"
key_command = ["pass", "show", "qd"]  # or: key_variable = "WORK_KEY"; or: key = "sk_..."
organization = "3f0e..."              # only with a user token
shown = true                          # in the cockpit's list, beside the service in use

[profiles.local]                      # the embedded service: with this name no address is needed
shown = true

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
max_active = 50                       # replicas of one organization that run at once
outgoing_private = false              # what users name may have private addresses; default: the owner's
outgoing_proxy = true                 # calls use the environment's proxies; default: those of git alone

[sandboxes]                           # where new replicas run; existing ones stay where they are
driver = "process"                    # or "docker": each in a container
address = "unix:///run/docker.sock"   # of Docker or podman, or ssh://HOST, or tcp://HOST:PORT;
                                      # default: /var/run/docker.sock
certificates = "~/.docker"            # of tcp://: a directory with ca.pem, cert.pem and key.pem
image = "registry.example/replica:1"  # without it the one that qd image build makes
swarm = true                          # on the nodes of the Swarm that address is a manager of
constraints = ["node.labels.zone==b"] # nodes that may run replicas; default: all
storage = "20Gi"                      # most of a replica's volume, where Docker can limit it
home_url = "https://192.0.2.7:8443"   # the service as containers see it; default: at their bridge
home_listen = "0.0.0.0:8443"          # listen there for containers alone, with an own certificate

[sandboxes.kubernetes]                # with driver = "kubernetes", which needs image and home_url
context = "team"                      # of the kubeconfig; default: its current one, or our own cluster
namespace = "decks"                   # default: quarterdeck
storage_class = "standard"            # a volume for each replica; without it sleeping keeps the save alone
lost_after = 15                       # seconds a node may be away before replicas start on another one

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
theme = "dark"                        # or "light"; "ansi": the terminal's 16 colors; your own
motion = "auto"                       # reduced over SSH; or "reduced": nothing moves; or "full"
mouse = true
notices = "osc"                       # or "bell", or "off": when a replica needs you or is done
notices_asking = "desktop"            # or "bell", or "off"; so for notices_plan, _failed, _done
quiet = "22:00-07:00"                 # local time without notices; default: none
clipboard = "ask"                     # or "refuse": when a program in a terminal wants to write it
calls = "edits"                       # ended calls show changes; or "output": that too; or "folded"
editing = "standard"                  # or "vim": vim's keys in the composer
images = "auto"                       # or "kitty", "sixel", "blocks", or "off"

[keys]                                # other keys for actions; the help names their ids
"replica.delete" = "D"
"replica.open" = ["enter", "z"]
"app.quit" = []                       # no key at all
"""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from quarterdeck.cli.config_file import config_text
from quarterdeck.cli.errors import ConfigError
from quarterdeck.cli.target import LOCAL
from quarterdeck.wire.agents import NO_PROVIDERS, PROVIDER_PATTERN, OwnAgent
from quarterdeck.wire.base import first_error

AgentId = Annotated[str, StringConstraints(pattern=PROVIDER_PATTERN)]


class AgentTable(OwnAgent):
    """An `OwnAgent` of the configuration file; `~` is the home directory of the user."""

    name: Annotated[str, Field(min_length=1, max_length=100)]

    @field_validator("command", "shown", mode="before")
    @classmethod
    def _at_home(cls, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return tuple(_expand_home(part) for part in value)  # pyright: ignore[reportUnknownVariableType]

    @field_validator("command")
    @classmethod
    def _starts_anywhere(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        if "/" in command[0] and not command[0].startswith("/"):
            raise ValueError(f"{command[0]!r}: give the program by its name or an absolute path")
        if command[0].startswith("{"):
            raise ValueError(f"{command[0]!r} is not an executable file")
        return command

    @field_validator("shown")
    @classmethod
    def _shows_little(cls, shown: tuple[str, ...]) -> tuple[str, ...]:
        for path in map(Path, shown):
            if not path.is_absolute():
                raise ValueError(f"{path}: give an absolute path, or one that begins with ~/")
            if Path.home().is_relative_to(path):
                raise ValueError(f"{path} contains your home directory; name only what is needed")
        return shown

    @model_validator(mode="after")
    def _default_is_offered(self) -> Self:
        if self.default_model and self.models and self.default_model not in self.models:
            raise ValueError(f"default_model {self.default_model!r} is not in models")
        return self


def check_ids(agents: dict[str, AgentTable]) -> dict[str, AgentTable]:
    """Refuse names that are reserved."""
    if not agents:
        return agents
    # Most people have no agents of their own.
    from quarterdeck.agents.presets import Quirks, load_presets

    for agent_id, table in agents.items():
        Quirks.model_validate(table.traps)
        if agent_id in load_presets():
            raise ValueError(f"{agent_id} is the name of an agent that is known already")
        if agent_id in NO_PROVIDERS:
            raise ValueError(f"{agent_id} cannot be the name of an agent; choose another")
    return agents


def _expand_home(part: Any) -> Any:
    return str(Path(part).expanduser()) if isinstance(part, str) and part.startswith("~/") else part


Text = Annotated[str, Field(min_length=1)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid")


class HostNames(_Table):
    """Headers and keys that this service names differently."""

    version_header: Text | None = None
    version: Text | None = None
    organization_header: Text | None = None
    transcript_key: Text | None = None


class Profile(_Table):
    """One service: its address, its key, and whether the cockpit shows it beside the one in use."""

    url: Annotated[str, Field(pattern=r"^https?://[^\s/]+")] | None = None
    socket: Text | None = None
    key: Text | None = None
    key_command: Annotated[list[Text], Field(min_length=1)] | None = None
    key_variable: Text | None = None
    organization: Text | None = None
    shown: bool = False
    names: HostNames = HostNames()

    @property
    def embedded(self) -> bool:
        """Whether it has no address: only the embedded service may."""
        return self.url is None and self.socket is None

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if self.url is not None and self.socket is not None:
            raise ValueError("give one of url and socket")
        given = [self.key, self.key_command, self.key_variable]
        if len([way for way in given if way is not None]) > 1:
            raise ValueError("give one of key, key_command and key_variable")
        return self


class ServiceTable(_Table):
    """Settings of the service of this machine."""

    issuer: Text | None = None
    jwks_url: Text | None = None
    audience: Text | None = None
    new_users: Literal["member", "admin"] | None = None
    requests_per_minute: Annotated[int, Field(ge=1)] | None = None
    max_active: Annotated[int, Field(ge=1)] | None = None
    outgoing_private: bool | None = None
    outgoing_proxy: bool | None = None


_StorageSize = Annotated[str, Field(pattern=r"^[1-9]\d*(Mi|Gi|Ti)$")]


class KubernetesTable(_Table):
    """The cluster that replicas run in, and what of it they use."""

    context: Text | None = None
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = (
        "quarterdeck"
    )
    storage_class: Text | None = None
    storage: _StorageSize = "20Gi"
    lost_after: Annotated[int, Field(ge=0)] = 15
    node_selector: dict[Text, Text] = {}
    runtime_class: Text | None = None


class SandboxesTable(_Table):
    """Where new replicas run."""

    driver: Literal["process", "docker", "kubernetes"] = "process"
    address: Annotated[str, Field(pattern=r"^(unix:///|(ssh|tcp)://[^\s/]+)")] | None = None
    certificates: Text | None = None
    image: Text | None = None
    swarm: bool = False
    constraints: list[Text] = []
    storage: _StorageSize | None = None
    home_url: Annotated[str, Field(pattern=r"^https?://[^\s/]+$")] | None = None
    home_ca: Text | None = None
    home_listen: Annotated[str, Field(pattern=r"^[^\s/]+:\d+$")] | None = None
    home_insecure: bool = False
    kubernetes: KubernetesTable = KubernetesTable()

    @property
    def storage_bytes(self) -> int | None:
        """The most that a replica's volume may take."""
        if self.storage is None:
            return None
        return int(self.storage[:-2]) << {"Mi": 20, "Gi": 30, "Ti": 40}[self.storage[-2:]]

    @model_validator(mode="after")
    def _fits_the_cluster(self) -> Self:
        if self.driver != "kubernetes":
            return self
        if self.image is None or self.home_url is None:
            raise ValueError("kubernetes needs an image that its nodes can pull, and a home_url")
        if self.address is not None:
            raise ValueError("address: the API server of Kubernetes is that of kubernetes.context")
        return self

    @model_validator(mode="after")
    def _encrypts(self) -> Self:
        scheme = (self.address or "").partition(":")[0]
        if (scheme == "tcp") != (self.certificates is not None):
            raise ValueError(
                "address: tcp:// is only used with TLS and needs certificates, the directory of "
                "ca.pem, cert.pem and key.pem; other addresses do not"
            )
        if self.swarm and self.driver != "docker":
            raise ValueError('swarm needs driver = "docker"')
        if self.storage and self.driver != "docker":
            raise ValueError('storage needs driver = "docker"; a cluster has kubernetes.storage')
        if self.constraints and not self.swarm:
            raise ValueError("constraints are those of a Swarm; set swarm = true")
        if self.swarm and self.home_url is None:
            raise ValueError("swarm: containers on other nodes need a home_url")
        if scheme in ("tcp", "ssh") and self.home_url is None:
            raise ValueError(f"containers behind an address with {scheme}:// need a home_url")
        given = "home_ca" if self.home_ca else "home_listen" if self.home_listen else None
        if given and not (self.home_url or "").startswith("https://"):
            raise ValueError(f"{given} needs a home_url that begins with https://")
        if self.home_ca and self.home_listen:
            raise ValueError("home_listen has a certificate of its own; leave home_ca out")
        return self


class SourceHost(_Table):
    """A source host: its webhooks, and the API for checks."""

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


def check_addresses(profiles: dict[str, Profile]) -> dict[str, Profile]:
    """Refuse profiles without an address, but for that of the embedded service."""
    for name, profile in profiles.items():
        if profile.embedded and name != LOCAL:
            raise ValueError(f"{name}: give one of url and socket")
    return profiles


class Config(_Table):
    """The whole file."""

    default: Text | None = None
    profiles: Annotated[dict[str, Profile], AfterValidator(check_addresses)] = {}
    service: ServiceTable = ServiceTable()
    sandboxes: SandboxesTable = SandboxesTable()
    host_a: Annotated[SourceHost, Field(alias="host-a")] = SourceHost()
    host_b: Annotated[SourceHost, Field(alias="host-b")] = SourceHost()
    agents: Annotated[dict[AgentId, AgentTable], AfterValidator(check_ids)] = {}
    # Read by the cockpit, which ignores errors in them.
    cockpit: dict[str, Any] = {}
    keys: dict[str, Any] = {}

    @model_validator(mode="after")
    def _default_exists(self) -> Self:
        if self.default is not None and self.default not in self.profiles:
            raise ValueError(f"default names the profile {self.default!r}, which is not there")
        return self


def read_config(path: Path) -> Config:
    """Return the file's content; an empty one when there is no file.

    Raises:
        ConfigError: it cannot be read or is invalid; the message names the file and the place.
    """
    return parse_config(config_text(path), path)


def parse_config(text: str, path: Path) -> Config:
    """Parse the text of the file.

    Raises:
        ConfigError: as `read_config`.
    """
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as e:  # of a number of thousands of digits, of brackets
        raise ConfigError(f"{path} cannot be read: {e}.", "Correct the file or remove it.") from e
    try:
        return Config.model_validate(document)
    except ValidationError as e:
        raise ConfigError(f"{path}: {first_error(e)}.", "Correct it.") from e
