"""Where a workspace lies on this machine, and where its own processes see it."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.local.home import INSIDE_SOCKET, Home
from quarterdeck.sandboxes.port import Layout, SandboxError

DOORWAY_INSIDE = "/run/service"
"""The directory of the service's socket for callers inside. A service that starts again makes its
socket anew, so the directory is shown, not the socket."""

PROGRAMS_INSIDE = "/run/programs"
"""Holds `qd`."""

INSIDE = Layout(
    workspace_dir="/workspace",
    home_dir="/home/agent",
    state_dir="/var/lib/replica",
    run_dir="/run/replica",
    service_socket=f"{DOORWAY_INSIDE}/{INSIDE_SOCKET}",
)
"""Paths inside a bubblewrap sandbox, the same in each."""

MIRRORS_INSIDE = "/run/mirrors"
"""Holds `<repository id>/objects` for every mirror that the workspace borrows objects from."""

_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Places:
    """The directories and files of one workspace.

    `files`, `home`, `state` and `run` belong to the sandbox. The rest is the service's own and is
    never mounted for writing, so nothing inside can forge it. `doorway` is the installation's, the
    same for each.
    """

    root: Path
    doorway: Path

    @property
    def mark(self) -> str:
        """What tells this sandbox's processes from all others on the machine.

        Not its id: a copy of an installation has workspaces of the same ids.
        """
        return hashlib.sha256(bytes(self.root.resolve())).hexdigest()[:32]

    @property
    def files(self) -> Path:
        return self.root / "files"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def etc(self) -> Path:
        """Generated `passwd`, `group` and `hosts`, bound read-only."""
        return self.root / "etc"

    @property
    def programs(self) -> Path:
        """Programs of ours for who works inside, bound read-only."""
        return self.root / "programs"

    @property
    def parts(self) -> Path:
        """Clones that are not finished yet."""
        return self.root / "parts"

    @property
    def clones(self) -> Path:
        """Which repositories were put into the workspace (`CloneBook`)."""
        return self.root / "clones.json"

    @property
    def record(self) -> Path:
        """Which processes run (`SandboxRecord`)."""
        return self.root / "sandbox.json"

    @property
    def status(self) -> Path:
        """What the launcher or bubblewrap says about its child: JSON lines."""
        return self.root / "status.jsonl"

    @property
    def owned_inside(self) -> tuple[Path, ...]:
        """The directories that belong to the user who runs inside."""
        return (self.files, self.home, self.state, self.run)

    @property
    def outside_layout(self) -> Layout:
        """The layout of a workspace without a mount namespace: the true paths."""
        return Layout(
            workspace_dir=str(self.files),
            home_dir=str(self.home),
            state_dir=str(self.state),
            run_dir=str(self.run),
            service_socket=str(self.doorway / INSIDE_SOCKET),
        )


def places_of(home: Home, workspace_id: str) -> Places:
    """The places of a workspace.

    Raises:
        SandboxError: the id could leave the workspaces' directory.
    """
    if not _SAFE_ID.fullmatch(workspace_id):
        raise SandboxError(f"{workspace_id!r} is no workspace id.")
    return Places(home.workspaces / workspace_id, home.doorway)
