"""What the engine asks of the machine it runs on."""

from pathlib import Path


def boot_id() -> str:
    """Names the machine's present boot; empty where the system does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
