"""Writes a setting into the table `[cockpit]`, and leaves all else in the file as it is."""

import re
from pathlib import Path

from quarterdeck.cli.config_text import config_text, put_config, reads_as
from quarterdeck.cli.errors import ConfigFault

TABLE = "cockpit"
_HEADER = re.compile(r"^\s*\[\s*cockpit\s*\]\s*(#.*)?$")
_ANY_HEADER = re.compile(r"^\s*\[")


def write_setting(path: Path, name: str, value: str | bool) -> None:
    """Sets one value.

    Raises:
        ConfigFault: the file cannot be read or written, or is written in a way that a person has to
            change by hand.
    """
    before, wanted = config_text(path)
    table = wanted.setdefault(TABLE, {})
    if isinstance(table, dict):
        table[name] = value
    after = with_setting(before, name, value)
    if not reads_as(after, wanted):
        raise ConfigFault(
            f"{path} is written in a way that cannot be changed from here.",
            f"Set {name} in its table [{TABLE}] by hand.",
        )
    put_config(path, after)


def with_setting(text: str, name: str, value: str | bool) -> str:
    """The text of a file with one line of the table changed or added."""
    lines = text.splitlines()
    written = f"{name} = {_written(value)}"
    header = next((n for n, line in enumerate(lines) if _HEADER.match(line)), None)
    if header is None:
        return "\n".join([*lines, *([""] if lines else []), f"[{TABLE}]", written, ""])
    end = next(
        (n for n in range(header + 1, len(lines)) if _ANY_HEADER.match(lines[n])), len(lines)
    )
    own = re.compile(rf"^\s*{re.escape(name)}\s*=")
    at = next((n for n in range(header + 1, end) if own.match(lines[n])), None)
    if at is None:
        lines.insert(header + 1, written)
    else:
        lines[at] = written + _comment(lines[at])
    return "\n".join([*lines, ""])


def _comment(line: str) -> str:
    """What is said behind a value; the values of this table have no # in them."""
    before, mark, said = line.partition("#")
    blanks = before[len(before.rstrip()) :]
    return f"{blanks}{mark}{said}" if mark else ""


def _written(value: str | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"'
