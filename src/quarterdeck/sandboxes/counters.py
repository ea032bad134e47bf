"""What the kernel counts for each user, or for the machine, and not for each sandbox.

A program inside can use all of it, and then programs of other replicas of the same user, and with an
ordinary user's service that service, get none. No sandbox bounds it; but it takes memory that is counted
for the replica's control group. So where the limit is high enough, a replica runs out of memory first.
"""

from pathlib import Path

from quarterdeck.local.processes import PROC
from quarterdeck.sandboxes.port import Gap

_COUNTERS = {
    "fs.epoll.max_user_watches": 128,
    "fs.inotify.max_user_instances": 1024,
    "fs.inotify.max_user_watches": 512,
    "kernel.pty.max": 4096,
    "fs.aio-max-nr": 32,
    "fs.file-max": 192,
}
"""Limits of the kernel, and bytes that one of what they count takes at least."""
_HIGHEST = {"kernel.pty.max": 1 << 20}
"""Highest value, where the kernel does not accept any."""
_MOST = (1 << 31) - 1


def counter_gap(memory: int, proc: Path = PROC) -> Gap | None:
    """Return which of these limits replicas reach before they have used all memory of the machine."""
    low: dict[str, int] = {}
    for name, size in _COUNTERS.items():
        wanted = min(memory // size, _HIGHEST.get(name, _MOST))
        try:
            limit = int((proc / "sys" / name.replace(".", "/")).read_text())
        except (OSError, ValueError):
            continue  # this kernel has no such limit
        if limit < wanted:
            round_up = 1 << (max(wanted, 2 * limit) - 1).bit_length()
            low[name] = min(round_up, _HIGHEST.get(name, _MOST))
    if not low:
        return None
    settings = " ".join(f"{name}={wanted}" for name, wanted in low.items())
    return Gap(
        "a replica can use up what the kernel counts for all programs of a user or of the machine "
        f"({', '.join(low)}), and then other replicas and the service get none",
        f"Run: sysctl -w {settings} (and write it to a file in /etc/sysctl.d to keep it).",
    )
