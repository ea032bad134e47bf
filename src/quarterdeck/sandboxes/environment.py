"""The environment that an engine starts with: nothing of the service's own."""

from pathlib import Path

from quarterdeck.sandboxes.identity import INSIDE_NAME
from quarterdeck.sandboxes.interpreter import SYSTEM_PATH
from quarterdeck.sandboxes.layout import Places
from quarterdeck.sandboxes.processes import MARKER


def login_shell() -> str:
    """The shell of the user inside."""
    return next((name for name in ("/bin/bash", "/usr/bin/bash") if Path(name).exists()), "/bin/sh")


def clean_environment(places: Places, home: str, programs: tuple[Path, ...] = ()) -> dict[str, str]:
    """Variables of a new sandbox.

    Args:
        home: the home directory, as seen inside.
        programs: directories of programs outside the system's.
    """
    own = [f"{home}/.local/bin", *map(str, programs)]
    return {
        "QUARTERDECK_WORKSPACE": places.root.name,
        MARKER: places.mark,
        "HOME": home,
        "USER": INSIDE_NAME,
        "LOGNAME": INSIDE_NAME,
        "SHELL": login_shell(),
        "PATH": ":".join([*own, *SYSTEM_PATH]),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
    }
