"""The verbs of `qd config`."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import click

from quarterdeck.cli.config_file import config_text, with_value, write_config
from quarterdeck.cli.errors import ConfigError, FailedError, UsageError
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import print_json, print_message, print_success, print_text
from quarterdeck.cli.target import config_path

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
    """Set one value.

    VALUE is true, false, a number, a list as in TOML; anything else is a string. Such as:
    qd config set cockpit.theme light
    """
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
    """Open the file in $VISUAL or $EDITOR.

    An invalid file is refused with the reason.
    """
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
