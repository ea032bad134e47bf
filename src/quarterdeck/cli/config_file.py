"""The text of the configuration file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quarterdeck.cli.errors import ConfigError
from quarterdeck.local.files import PRIVATE, make_private_directory, read_file, write_file
from quarterdeck.local.trust import make_private, why_file_untrusted


def config_text(path: Path) -> str:
    """Return the file's text, empty when there is no file.

    Raises:
        ConfigError: it cannot be read, or another user could have written it: it names programs that are run.
    """
    if path.exists() and (untrusted := why_file_untrusted(path)):
        place, why = untrusted
        raise ConfigError(f"{place} {why}, so {path} is not read.", make_private(place))
    try:
        return read_file(path).decode() if path.exists() else ""
    except (OSError, UnicodeDecodeError) as e:
        why = e.strerror or e if isinstance(e, OSError) else e
        raise ConfigError(f"{path} cannot be read: {why}.", "Correct the file.") from e


def with_value(text: str, names: Sequence[str], value: Any) -> str:
    """Return a file's text with the value at `names`, the path through its tables, replaced or added.

    Raises:
        ConfigError: the text is not TOML, or a name of the path is not a table in it.
    """
    import tomlkit  # slow to import, and only needed for changes
    from tomlkit.exceptions import TOMLKitError
    from tomlkit.items import InlineTable

    try:
        document = tomlkit.parse(text)
        table: Any = document
        for at, name in enumerate(names[:-1], 1):
            if name not in table and isinstance(table, InlineTable):
                table[name] = tomlkit.inline_table()
            elif name not in table:
                table[name] = tomlkit.table(is_super_table=at < len(names) - 1)
            if not isinstance(table[name], dict):
                raise ConfigError(f"{'.'.join(names[:at])} is not a table.")
            table = table[name]
        table[names[-1]] = value
        return tomlkit.dumps(document)
    except TOMLKitError as e:
        raise ConfigError(f"The configuration file is not TOML: {e}.", "Correct the file.") from e


def change_config(path: Path, names: Sequence[str], value: Any) -> None:
    """Set one value in the file.

    Raises:
        ConfigError: the file cannot be read, changed or written.
    """
    write_config(path, with_value(config_text(path), names, value))


def write_config(path: Path, text: str) -> None:
    """Write the file atomically; it may contain keys, so it keeps its mode and is private when new.

    Raises:
        ConfigError: it cannot be written.
    """
    target = path.resolve()
    try:
        make_private_directory(target.parent)
        mode = target.stat().st_mode & 0o777 if target.exists() else PRIVATE
        write_file(target, text, mode=mode)
    except OSError as e:
        raise ConfigError(f"{path} cannot be written: {e.strerror}.") from e
