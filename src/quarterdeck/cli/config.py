"""The text of the configuration file, and the verbs of `qd config`."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import click

from quarterdeck.cli.errors import ConfigError, FailedError, UsageError
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import print_json, print_message, print_success, print_text
from quarterdeck.cli.target import config_path
from quarterdeck.local.files import PRIVATE, read_file, write_file


def config_text(path: Path) -> str:
    """Return the file's text, empty when there is no file.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return read_file(path).decode() if path.exists() else ""
    except (OSError, UnicodeDecodeError) as e:
        raise ConfigError(f"{path} cannot be read: {e}.", "Correct the file.") from e


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
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else PRIVATE
        write_file(target, text, mode=mode)
    except OSError as e:
        raise ConfigError(f"{path} cannot be written: {e.strerror}.") from e


KEYS = "keys"
"""The table whose names are ids of actions, which contain dots."""
SECRETS = ("key", "token", "webhook_secret")
MASK = "********"
_BARE = re.compile(r"[A-Za-z0-9_-]+")

_Names = Sequence[str]


@click.group(name="config", invoke_without_command=True)
@click.pass_context
def config(ctx: click.Context) -> None:
    """Show and change the configuration file. Without a command: show.

    NAME is a setting with its tables, such as cockpit.theme, profiles.work.url or
    keys.replica.delete.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(show)


@config.command(name="path")
@common_options
def print_path(common: Common) -> None:
    """Print where the configuration file is, or would be."""
    if common.json:
        print_json({"path": str(config_path()), "exists": config_path().exists()})
    else:
        print_text(str(config_path()))


@config.command(name="show")
@common_options
def show(common: Common) -> None:
    """Print the settings with secrets masked, and the errors in them."""
    file = config_path()
    text = config_text(file)
    for fault in _faults(text, file):
        print_message(f"Ignored: {fault}")
    settings = tomllib.loads(text)
    masked = {names: MASK if _is_secret(names) else value for names, value in _flat(settings)}
    if common.json:
        print_json(_nested(masked))
        return
    if not file.exists():
        print_message(f"No configuration file at {file}; every setting has its default.")
        return
    print_text(f"# {file}")
    for names, value in masked.items():
        print_text(f"{_dotted(names)} = {json.dumps(value, ensure_ascii=False, default=str)}")


@config.command(name="get")
@click.argument("name")
@common_options
def get(common: Common, name: str) -> None:
    """Print the value of one setting; exit code 1 when it is not set."""
    names = _names(name)
    value: Any = tomllib.loads(_check(config_text(config_path()), config_path()))
    for part in names:
        if not isinstance(value, dict) or part not in value:
            raise FailedError(
                f"{_dotted(names)} is not set.", "Show the settings with: qd config show."
            )
        value = cast("dict[str, Any]", value)[part]
    if common.json:
        print_json({"name": _dotted(names), "value": value})
    else:
        print_text(value if isinstance(value, str) else json.dumps(value, default=str))


@config.command(name="set")
@click.argument("name")
@click.argument("value")
@common_options
def set_(common: Common, name: str, value: str) -> None:
    """Set one value: true, false, a number, a list as in TOML; anything else is a string."""
    file, names = config_path(), _names(name)
    before = config_text(file)
    try:
        after = _check(with_value(before, names, _read_value(value)), file)
    except ConfigError:
        # A text may look like a number.
        after = _check(with_value(before, names, value), file)
    write_config(file, after)
    print_success(f"Set {_dotted(names)}.", common.json)


@config.command(name="edit")
@common_options
def edit(common: Common) -> None:
    """Open the file in $VISUAL or $EDITOR; an invalid file is refused with the reason."""
    file = config_path()
    before = config_text(file)
    # Without a final newline, the editor's own would look like a change.
    after = click.edit(before, extension=".toml")
    if after is None or after == before:
        print_message("Unchanged.")
        return
    try:
        _check(after, file)
    except ConfigError:
        kept = file.with_name(f"{file.name}.edited")
        write_config(kept, after)
        print_message(f"{file} is unchanged. What you wrote is in {kept}.")
        raise
    write_config(file, after)
    print_success(f"Saved {file}.", common.json)


def _faults(text: str, file: Path) -> tuple[str, ...]:
    """Return the errors that the cockpit ignores in a valid file.

    Raises:
        ConfigError: it cannot be used.
    """
    from quarterdeck.cli.schema import parse_config
    from quarterdeck.tui.options import THEME_DIRECTORY, read_options, theme_files

    parse_config(text, file)
    themes = (theme.stem for theme in theme_files(file.parent / THEME_DIRECTORY))
    return read_options(tomllib.loads(text), themes).faults


def _check(text: str, file: Path) -> str:
    """Return the text if everything in it is valid, else raise `ConfigError`."""
    if faults := _faults(text, file):
        raise ConfigError(" ".join(faults))
    return text


def _names(written: str) -> _Names:
    """Return the tables and the name of a setting, parsed as a dotted key of TOML."""
    try:
        value: Any = tomllib.loads(f"{written} = 0")
    except tomllib.TOMLDecodeError as e:
        raise UsageError(f"{written!r} is not the name of a setting.") from e
    names: list[str] = []
    while isinstance(value, dict):
        ((name, value),) = cast("dict[str, Any]", value).items()
        names.append(name)
    return [KEYS, ".".join(names[1:])] if names[0] == KEYS and names[1:] else names


def _read_value(written: str) -> Any:
    try:
        return tomllib.loads(f"value = {written}")["value"]
    except tomllib.TOMLDecodeError:
        return written


def _flat(table: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[Any, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(cast("dict[str, Any]", value), (*above, name))
        else:
            yield (*above, name), value


def _nested(flat: Mapping[Any, Any]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for names, value in flat.items():
        table = root
        for name in names[:-1]:
            table = table.setdefault(name, {})
        table[names[-1]] = value
    return root


def _is_secret(names: _Names) -> bool:
    return len(names) > 1 and names[0] != KEYS and names[-1] in SECRETS


def _dotted(names: _Names) -> str:
    return ".".join(name if _BARE.fullmatch(name) else json.dumps(name) for name in names)
