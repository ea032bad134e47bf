"""Repositories as a person writes them, and as the service knows them."""

from pathlib import Path


def in_full(typed: str) -> str:
    """A local path in full; anything else as it is."""
    typed = typed.strip()
    path = Path(typed).expanduser()
    if typed and "://" not in typed and path.exists():
        return str(path.resolve())
    return typed
