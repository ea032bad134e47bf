"""The directory of an installation (`QUARTERDECK_HOME`)."""

import os
from pathlib import Path
from typing import NamedTuple

HOME_VARIABLE = "QUARTERDECK_HOME"
INSIDE = "inside"
INSIDE_SOCKET = "qd.sock"


class Home(NamedTuple):
    """The directory of one installation and the places in it.

    The root and `service` belong to the service's user alone. `workspaces` holds one directory per
    workspace, `archives` one file per archived workspace, `saves` one bare
    repository per workspace in a container, `mirrors` one bare repository per
    connected repository, `client` files of the cockpit (drafts, unsent messages), `agents` coding
    agents installed by `qd agents install`.
    """

    root: Path

    @property
    def service(self) -> Path:
        return self.root / "service"

    @property
    def socket(self) -> Path:
        """Unix socket of the embedded service."""
        return self.service / "qd.sock"

    @property
    def inside_sockets(self) -> Path:
        """Directory of the socket for callers inside workspaces, shown in every sandbox."""
        return self.root / INSIDE

    @property
    def inside_socket(self) -> Path:
        """Unix socket that accepts only secrets of engines."""
        return self.inside_sockets / INSIDE_SOCKET

    @property
    def lock(self) -> Path:
        """Held (`flock`) by the one service of this home; its text is the holder's pid."""
        return self.service / "lock"

    @property
    def stopped(self) -> Path:
        """Exists after `qd stop`, until the next start: open cockpits do not start the service then."""
        return self.service / "stopped"

    @property
    def id(self) -> Path:
        """The home's id, which identifies its service among those that share a database."""
        return self.service / "home.id"

    @property
    def key(self) -> Path:
        """The owner's key made at first start, mode 0600."""
        return self.service / "key"

    @property
    def master_key(self) -> Path:
        """The key for stored secrets, mode 0600."""
        return self.service / "master.key"

    @property
    def database(self) -> Path:
        return self.service / "quarterdeck.sqlite3"

    @property
    def reserve(self) -> Path:
        """Holds some room of the disk, which is released when the disk is full."""
        return self.service / "reserve"

    @property
    def log(self) -> Path:
        """Log of a service that was started in the background."""
        return self.service / "service.log"

    @property
    def workspaces(self) -> Path:
        return self.root / "workspaces"

    @property
    def archives(self) -> Path:
        return self.root / "archives"

    @property
    def saves(self) -> Path:
        return self.root / "saves"

    @property
    def mirrors(self) -> Path:
        return self.root / "mirrors"

    @property
    def skills(self) -> Path:
        """The user's registry of skills: a directory with a folder for each."""
        return self.root / "skills"

    @property
    def skill_registries(self) -> Path:
        """Names further registries, a git URL or an absolute path per line; `#` starts a comment."""
        return self.root / "skill-registries"

    @property
    def agents(self) -> Path:
        """Our own npm prefix, for agents that could not be installed into the user's."""
        return self.root / "agents"

    @property
    def client(self) -> Path:
        return self.root / "client"


def find_home() -> Home:
    """Return the home named by `QUARTERDECK_HOME`, else the platform's user data directory."""
    named = os.environ.get(HOME_VARIABLE)
    if named:
        return Home(Path(named).expanduser().absolute())
    from platformdirs import user_data_path  # slow to import, rarely needed

    return Home(user_data_path("quarterdeck", appauthor=False))
