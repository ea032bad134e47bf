"""The cockpit's part of the configuration file: `[cockpit]` and `[keys]`."""

import tomllib
from pathlib import Path

from quarterdeck.tui.options import Options, read_options


def read_cockpit_file(path: Path) -> Options:
    """What a person set. A file that cannot be read is told, and keeps nobody out."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return Options()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        return Options(faults=(f"{path} cannot be read: {e}.",))
    return read_options(document)
