"""What the configuration file and the environment say of the source hosts.

The tables `[host-a]` and `[host-b]` have five keys; a variable such as `QD_HOST_A_TOKEN` comes before
its key. `token_file` and `webhook_secret_file` name files that hold nothing else.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from quarterdeck.cli.config_path import config_path
from quarterdeck.cli.errors import ConfigFault

if TYPE_CHECKING:
    from quarterdeck.service.hosts.settings import HostSettings, HostsSettings

HOSTS = ("host-a", "host-b")
SECRETS = ("webhook_secret", "token")

Table = dict[str, str]


def hosts_settings() -> "HostsSettings":
    """Both hosts as they are set up.

    Raises:
        ConfigFault: the file is wrong, or a secret cannot be read.
    """
    from quarterdeck.service.hosts.settings import HostsSettings

    tables = read_tables()
    return HostsSettings(*(_settings(host, tables[host]) for host in HOSTS))


def read_tables() -> dict[str, Table]:
    """What is said of each host, files not yet read.

    Raises:
        ConfigFault: the file is wrong.
    """
    path, told = config_path(), dict[str, Table]()
    if path.exists():
        from quarterdeck.cli.config import read_config  # pydantic is only needed for a file

        config = read_config(path)
        told = {
            "host-a": config.host_a.model_dump(exclude_none=True),
            "host-b": config.host_b.model_dump(exclude_none=True),
        }
    return {host: _with_variables(host, told.get(host, {})) for host in HOSTS}


def secret_files(table: Table) -> list[Path]:
    """The files that a table names."""
    return [_path(table[key]) for name in SECRETS if (key := f"{name}_file") in table]


def _with_variables(host: str, table: Table) -> Table:
    """The table, with what variables say; a secret and its file stand for one another."""
    found = dict(table)
    prefix = f"QD_{host.replace('-', '_').upper()}_"
    for name in ("api_url", *SECRETS):
        keys = (name, f"{name}_file") if name in SECRETS else (name,)
        given = {key: text for key in keys if (text := os.environ.get(prefix + key.upper()))}
        if len(given) > 1:
            raise _fault(f"{prefix}{name.upper()} and its _FILE are both set", "Set one of them.")
        if given:
            for key in keys:
                found.pop(key, None)
            found |= given
    return found


def _settings(host: str, table: Table) -> "HostSettings":
    from quarterdeck.service.hosts.settings import HostSettings

    api_url = table.get("api_url")
    if api_url is not None and not api_url.startswith(("http://", "https://")):
        raise _fault(f"{host}: api_url is no http(s) address", "Correct it.")
    return HostSettings(
        webhook_secret=_secret(host, table, "webhook_secret"),
        api_url=api_url and api_url.rstrip("/"),
        token=_secret(host, table, "token"),
    )


def _secret(host: str, table: Table, name: str) -> str | None:
    text = table.get(name)
    named = table.get(f"{name}_file")
    if named is not None:
        try:
            text = _path(named).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as e:
            why = e.strerror if isinstance(e, OSError) else "it is no UTF-8"
            raise _fault(f"{host}: {name}_file cannot be read: {why}", f"Look at {named}.") from e
    if text is None:
        return None
    if not text.strip():
        raise _fault(f"{host}: {name} is empty", "Give it, or leave it out.")
    return text.strip()


def _path(named: str) -> Path:
    """A file as named; a relative one lies beside the configuration file."""
    return config_path().parent / Path(named).expanduser()


def _fault(what: str, step: str) -> ConfigFault:
    return ConfigFault(f"{what}.", step)
