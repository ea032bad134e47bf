"""Keys that `qd auth login` keeps: one file per profile, readable by its owner alone."""

import os
from pathlib import Path
from urllib.parse import quote

from quarterdeck.cli.errors import ConfigFault
from quarterdeck.local.home import Home


def kept_key_path(home: Home, profile: str) -> Path:
    """Where the key of a profile is kept."""
    return home.client / "keys" / quote(profile, safe="")


def read_kept_key(path: Path) -> str | None:
    """The key, or None when none is kept.

    Raises:
        ConfigFault: it is there and cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as e:
        raise ConfigFault(f"The key in {path} cannot be read: {e}.", "Remove the file.") from e


def forget_key(path: Path) -> None:
    """Keeps no key any more.

    Raises:
        ConfigFault: the file cannot be removed.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as e:
        raise ConfigFault(f"The key in {path} cannot be removed: {e.strerror}.") from e


def keep_key(path: Path, key: str) -> None:
    """Keeps a key for good.

    Raises:
        ConfigFault: the file cannot be written.
    """
    draft = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.unlink(missing_ok=True)
        # Owner-only from its first moment, whatever the umask is.
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(key + "\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as e:
        raise ConfigFault(f"The key cannot be kept in {path}: {e.strerror}.") from e
