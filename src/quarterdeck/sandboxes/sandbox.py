"""The launcher's instructions for one sandbox on this machine."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from quarterdeck.local.open_files import STARTED_WITH
from quarterdeck.sandboxes.bubblewrap import NOTHING, SandboxProfile, VisiblePaths, options
from quarterdeck.sandboxes.cgroups import BOUNDS
from quarterdeck.sandboxes.interpreter import needed_directories
from quarterdeck.sandboxes.kernel import Hardening
from quarterdeck.sandboxes.launch import LaunchSpec, clean_environment, login_shell
from quarterdeck.sandboxes.layout import INSIDE, MIRRORS_INSIDE, PROGRAMS_INSIDE, Places
from quarterdeck.sandboxes.port import Layout, Size
from quarterdeck.sandboxes.processes import MARKER, SandboxUser, write_accounts
from quarterdeck.sandboxes.programs import write_programs
from quarterdeck.sandboxes.record import CloneBook, Mode

PASSABLE = 0o711
OBJECTS_VARIABLE = "GIT_ALTERNATE_OBJECT_DIRECTORIES"


@dataclass(frozen=True)
class Confinement:
    """How sandboxes are run here: with bubblewrap's path, or without it, and as whom.

    `grouped`: each has control groups.
    """

    bubblewrap: str | None
    user: SandboxUser
    hardening: Hardening = field(default_factory=Hardening)
    grouped: bool = False

    @property
    def mode(self) -> Mode:
        return "bubblewrap" if self.bubblewrap else "none"

    def layout(self, places: Places) -> Layout:
        return INSIDE if self.bubblewrap else places.outside_layout


@dataclass(frozen=True)
class CommandOverrides:
    """The settings of a command other than the engine. `directory` is a path inside."""

    directory: str
    environment: dict[str, str]


def describe(
    confinement: Confinement,
    places: Places,
    command: Sequence[str],
    mirrors: dict[str, Path],
    book: CloneBook,
    shown: VisiblePaths = NOTHING,
    overrides: CommandOverrides | None = None,
    size: Size = "small",
    groups: Sequence[str] = (),
) -> LaunchSpec:
    """Return the launch of a command in a workspace; write its account files and programs.

    Args:
        mirrors: the object directories the workspace borrows from, by the mirrors' names.
        shown: the user's programs.
        overrides: for a command that ends with the service, with or without a running engine.
        size: of the replica, which bounds the number of its processes.
        groups: the directories of its control groups.
    """
    layout = confinement.layout(places)
    programs = Path(PROGRAMS_INSIDE) if confinement.bubblewrap else places.programs
    environment = clean_environment(places, layout.home_dir, (programs,))
    environment |= _moved_objects(confinement, mirrors, book)
    hostname = f"replica-{places.root.name[:8]}"
    if overrides is None or not places.programs.is_dir():
        write_accounts(places.etc, confinement.user, layout.home_dir, login_shell(), hostname)
        write_programs(places.programs, shown.calls)
    # The service also creates it; but sandboxes can be run without a service.
    places.inside_sockets.mkdir(mode=PASSABLE, exist_ok=True)
    read_only = tuple(needed_directories(places.installation.root))
    own = (*places.owned_inside, places.etc, places.programs, places.inside_sockets)
    paths = [*own, *mirrors.values(), *read_only, *shown.paths]
    hardening = confinement.hardening
    spec = LaunchSpec(
        command=list(command),
        environment=environment | (overrides.environment if overrides else {}),
        directory=overrides.directory if overrides else layout.workspace_dir,
        uid=confinement.user.uid if confinement.user.drop else None,
        gid=confinement.user.gid if confinement.user.drop else None,
        expose=_reachable(paths, confinement),
        open_files=STARTED_WITH,
        processes=BOUNDS[size].processes if hardening.counted else None,
        filter=hardening.filter,
        scoped=hardening.scoped,
        groups=list(groups),
    )
    if not confinement.bubblewrap:
        return spec
    profile = SandboxProfile(
        places,
        confinement.user,
        hostname,
        spec.environment,
        read_only,
        min(BOUNDS[size].memory, installed_memory()) if hardening.sized else None,
        mirrors,
        shown.paths,
        directory=spec.directory,
        tied=overrides is not None,
    )
    return _wrapped(spec, confinement.bubblewrap, profile)


def installed_memory() -> int:
    """Return the bytes of memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _wrapped(spec: LaunchSpec, program: str, profile: SandboxProfile) -> LaunchSpec:
    return replace(
        spec,
        # only for bubblewrap: the command inside gets the profile's
        environment={name: spec.environment[name] for name in (MARKER, "PATH", "LANG")},
        inside=spec.environment,
        bubblewrap=program,
        options=options(profile),
    )


def _reachable(paths: list[Path], confinement: Confinement) -> list[str]:
    if not confinement.user.drop:
        return []
    program = [Path(confinement.bubblewrap)] if confinement.bubblewrap else []
    return [str(path) for path in [*paths, *program] if path.exists()]


def _moved_objects(
    confinement: Confinement, mirrors: dict[str, Path], book: CloneBook
) -> dict[str, str]:
    """Return the settings that let git find mirrors for clones of the other mode."""
    recorded = {entry.objects for entry in book.clones.values() if entry.objects}
    present = {
        f"{MIRRORS_INSIDE}/{name}/objects" if confinement.bubblewrap else str(objects)
        for name, objects in mirrors.items()
    }
    if recorded <= present:
        return {}
    return {OBJECTS_VARIABLE: ":".join(sorted(present))}
