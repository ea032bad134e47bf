"""What the launcher is told for one sandbox on this machine."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from quarterdeck.sandboxes.bubblewrap import Profile, options
from quarterdeck.sandboxes.environment import clean_environment, login_shell
from quarterdeck.sandboxes.identity import SandboxUser, write_accounts
from quarterdeck.sandboxes.interpreter import needed_directories
from quarterdeck.sandboxes.launch import LaunchSpec
from quarterdeck.sandboxes.layout import INSIDE, MIRRORS_INSIDE, PROGRAMS_INSIDE, Places
from quarterdeck.sandboxes.port import Layout
from quarterdeck.sandboxes.processes import MARKER
from quarterdeck.sandboxes.programs import write_programs
from quarterdeck.sandboxes.record import CloneBook, Mode
from quarterdeck.sandboxes.shown import NOTHING, Shown

PASSABLE = 0o711
OBJECTS_VARIABLE = "GIT_ALTERNATE_OBJECT_DIRECTORIES"


@dataclass(frozen=True)
class Confinement:
    """How sandboxes are run here: with bubblewrap's path, or without it, and as whom."""

    bubblewrap: str | None
    user: SandboxUser

    @property
    def mode(self) -> Mode:
        return "bubblewrap" if self.bubblewrap else "none"

    def layout(self, places: Places) -> Layout:
        return INSIDE if self.bubblewrap else places.outside_layout


def describe(
    confinement: Confinement,
    places: Places,
    command: Sequence[str],
    mirrors: dict[str, Path],
    book: CloneBook,
    shown: Shown = NOTHING,
) -> LaunchSpec:
    """The launch of a command in a workspace, whose account files and programs are written on the way.

    Args:
        mirrors: the object directories the workspace borrows from, by the mirrors' names.
        shown: programs of the person's.
    """
    layout = confinement.layout(places)
    programs = Path(PROGRAMS_INSIDE) if confinement.bubblewrap else places.programs
    environment = clean_environment(places, layout.home_dir, (programs,))
    environment |= _moved_objects(confinement, mirrors, book)
    hostname = f"replica-{places.root.name[:8]}"
    write_accounts(places.etc, confinement.user, layout.home_dir, login_shell(), hostname)
    write_programs(places.programs, shown.calls)
    # The service makes it, too; but sandboxes can be run without one.
    places.doorway.mkdir(mode=PASSABLE, exist_ok=True)
    read_only = tuple(needed_directories())
    own = (*places.owned_inside, places.etc, places.programs, places.doorway)
    bound = [*own, *mirrors.values(), *read_only, *shown.paths]
    spec = LaunchSpec(
        command=list(command),
        environment=environment,
        directory=layout.workspace_dir,
        uid=confinement.user.uid if confinement.user.drop else None,
        gid=confinement.user.gid if confinement.user.drop else None,
        expose=_reachable(bound, confinement),
    )
    if not confinement.bubblewrap:
        return spec
    profile = Profile(places, hostname, environment, read_only, mirrors, shown.paths)
    return _wrapped(spec, confinement.bubblewrap, profile)


def _wrapped(spec: LaunchSpec, program: str, profile: Profile) -> LaunchSpec:
    return replace(
        spec,
        # of bubblewrap alone: the command inside gets the profile's
        environment={name: spec.environment[name] for name in (MARKER, "PATH", "LANG")},
        directory="/",
        bubblewrap=program,
        options=options(profile),
    )


def _reachable(bound: list[Path], confinement: Confinement) -> list[str]:
    if not confinement.user.drop:
        return []
    program = [Path(confinement.bubblewrap)] if confinement.bubblewrap else []
    return [str(path) for path in [*bound, *program] if path.exists()]


def _moved_objects(
    confinement: Confinement, mirrors: dict[str, Path], book: CloneBook
) -> dict[str, str]:
    """Points git at mirrors that clones made in the other mode would not find."""
    known = {entry.objects for entry in book.clones.values() if entry.objects}
    present = {
        f"{MIRRORS_INSIDE}/{name}/objects" if confinement.bubblewrap else str(objects)
        for name, objects in mirrors.items()
    }
    if known <= present:
        return {}
    return {OBJECTS_VARIABLE: ":".join(sorted(present))}
