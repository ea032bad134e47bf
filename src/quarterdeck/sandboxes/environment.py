"""The environment that an engine starts with: nothing of the service's own."""

from pathlib import Path

from quarterdeck.sandboxes.identity import INSIDE_NAME
from quarterdeck.sandboxes.processes import MARKER

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def login_shell() -> str:
    """The shell of the user inside."""
    return next((name for name in ("/bin/bash", "/usr/bin/bash") if Path(name).exists()), "/bin/sh")


def clean_environment(
    workspace_id: str, home: str, programs: tuple[Path, ...] = ()
) -> dict[str, str]:
    """Variables of a new sandbox.

    Args:
        programs: directories of programs that the user installed outside the system's.
    """
    own = [f"{home}/.local/bin", *map(str, programs)]
    return {
        MARKER: workspace_id,
        "HOME": home,
        "USER": INSIDE_NAME,
        "LOGNAME": INSIDE_NAME,
        "SHELL": login_shell(),
        "PATH": ":".join([*own, _SYSTEM_PATH]),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
    }
