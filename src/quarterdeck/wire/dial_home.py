"""The connections that an engine in a container opens to its service.

The service cannot reach into a container, so the engine dials: WebSockets over the service's own
HTTP listener, with a bearer token and the workspace's id in the headers of the handshake.

| path | token | messages |
|---|---|---|
| `BOOT_PATH` | of one start, which the container's environment holds | one from the service: `BootConfig`; then the token is worthless |
| `LINK_PATH` | `BootConfig.token` | one from the service when it takes the connection: `Destination`; then bytes both ways |

The engine keeps `SPARES` connections waiting to be taken. The bytes are those of the engine's unix
socket (`wire.engine`), or of a program that listens on a port in the container.
"""

from pydantic import Field

from quarterdeck.wire.base import CamelRecord
from quarterdeck.wire.engine import EngineConfig
from quarterdeck.wire.saves import WorkSave

BOOT_PATH = "/v1/engine/boot"
LINK_PATH = "/v1/engine/link"
WORKSPACE_HEADER = "X-Workspace-Id"
SPARES = 2
"""Connections that wait to be taken."""
PART_BYTES = 64 << 10
"""Most bytes of one message after a connection was taken."""

OPENED = "open"

HOME_CA_VARIABLE = "QD_HOME_CA"
"""The certificate to check the service's against, in PEM; without it the image's authorities."""
HOME_CA_NAME = "home-ca.pem"
"""The file of it in the run directory, for programs inside."""
BOOT_VARIABLE = "QD_BOOT_TOKEN"


class Destination(CamelRecord):
    """Where the bytes of a taken connection go: to a port of the container, else to the engine.

    For a port the engine answers `OPENED` first, or ends the connection when nothing listens there.
    """

    port: int | None = None


class UncommittedPack(CamelRecord):
    """The user's uncommitted changes, for a new clone: a commit, and a pack with its objects."""

    commit: str
    pack: str = Field(repr=False)
    """In base64."""
    ref: str
    """Keeps the commit in the clone."""


class BootClone(CamelRecord):
    """A repository that the engine clones from its service, unless it is there."""

    repository_id: str
    name: str
    """For a person."""
    path: str
    """Absolute, inside."""
    url: str
    """Its true address, which becomes that of `origin`."""
    branch: str
    base_commit: str | None = None
    """Where the branch starts; null in a repository without a commit."""
    default_branch: str
    git_config: str = ""
    """Lines for the clone's configuration."""
    uncommitted: UncommittedPack | None = None


class BootConfig(CamelRecord):
    """What an engine in a container is started with. It is not written to a disk."""

    config: EngineConfig
    token: str = Field(repr=False)
    """For the connections of this start of the container."""
    clones: list[BootClone] = []
    git_config: str = ""
    """The first content of `~/.gitconfig`."""
    save: WorkSave | None = None
    """The last save, without its refs: it is restored where nothing is. `git fetch` reads it from the
    service like a repository, by the workspace's id."""
    incarnation: str | None = None
    """Names this start, where a workspace may have several volumes: its volume is marked with it."""
    newest: list[str] = []
    """The incarnations whose volume has the newest work; the files of another one are not used if
    there is a save. Empty: any."""
    needs_files: bool = False
    """An empty volume is an error: its files are elsewhere, and not saved."""
