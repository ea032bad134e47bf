"""Settings of the service, from the options of `qd serve`, variables and the configuration file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quarterdeck.cli.errors import ConfigError, UsageError
from quarterdeck.cli.options import combined
from quarterdeck.cli.target import config_path
from quarterdeck.local.files import read_file

if TYPE_CHECKING:
    from quarterdeck.service.fleet.settings import FleetSettings
    from quarterdeck.service.hosts.settings import HostSettings, HostsSettings
    from quarterdeck.service.identity.tokens import IdentitySettings, IssuerSettings


admission_options = combined(
    click.option("--issuer", metavar="URL", help="Accept user tokens of this OIDC issuer."),
    click.option("--jwks-url", metavar="URL", help="Where the provider publishes its keys."),
    click.option("--audience", metavar="TEXT", help="Audience that its tokens must have."),
    click.option(
        "--new-users",
        type=click.Choice(["member", "admin"]),
        help="Role for first-time users; default: none.",
    ),
    click.option(
        "--requests-per-minute",
        metavar="N",
        type=click.IntRange(1),
        help="Requests per minute of one key or user; default: unlimited.",
    ),
    click.option(
        "--max-active",
        metavar="N",
        type=click.IntRange(1),
        help="Replicas of one organization that run at once; without it, 50.",
    ),
    click.option(
        "--outgoing-private/--no-outgoing-private",
        default=None,
        help="Whether webhooks, notifications and git may reach private addresses that users name; "
        "without it, only those that the owner names.",
    ),
)
"""Passed to the function as keyword arguments."""


def admission_settings(
    given: dict[str, Any],
) -> "tuple[IdentitySettings, FleetSettings, bool | None, bool | None]":
    """Return the settings of the options and the configuration file.

    The last two are whether calls may reach private addresses that users name, and whether those go
    through the environment's proxies.

    Raises:
        ConfigError: the file is wrong.
        UsageError: an issuer without a key URL, or settings of an issuer without one.
    """
    from quarterdeck.service.fleet.settings import FleetSettings
    from quarterdeck.service.identity.tokens import IdentitySettings

    path = config_path()
    merged: dict[str, Any] = {}
    if path.exists():
        from quarterdeck.cli.schema import read_config  # pydantic is only needed for a file

        merged = read_config(path).service.model_dump(exclude_none=True)
    merged |= {name: value for name, value in given.items() if value is not None}
    private = merged.pop("outgoing_private", None)
    proxy = merged.pop("outgoing_proxy", None)
    limit, most = merged.pop("requests_per_minute", None), merged.pop("max_active", None)
    fleet = FleetSettings() if most is None else FleetSettings(active_limit=most)
    identity = IdentitySettings(_issuer_settings(merged) if merged else None, limit)
    return identity, fleet, private, proxy


def _issuer_settings(given: dict[str, Any]) -> "IssuerSettings":
    from quarterdeck.service.identity.tokens import IssuerSettings

    missing = [name for name in ("issuer", "jwks_url") if not given.get(name)]
    if missing:
        raise UsageError(
            f"An identity provider needs {' and '.join(missing)}.",
            "Give --issuer and --jwks-url together, or put both into the table [service].",
        )
    return IssuerSettings(**given)


HOSTS = ("host-a", "host-b")
SECRETS = ("webhook_secret", "token")

Table = dict[str, str]


def hosts_settings() -> "HostsSettings":
    """Return the settings of both hosts.

    Raises:
        ConfigError: the file is wrong, or a secret cannot be read.
    """
    from quarterdeck.service.hosts.settings import HostsSettings

    tables = read_tables()
    return HostsSettings(*(_host_settings(host, tables[host]) for host in HOSTS))


def read_tables() -> dict[str, Table]:
    """Return the table of each host, before secret files are read.

    Raises:
        ConfigError: the file is wrong.
    """
    path, tables = config_path(), dict[str, Table]()
    if path.exists():
        from quarterdeck.cli.schema import read_config  # pydantic is only needed for a file

        config = read_config(path)
        tables = {
            "host-a": config.host_a.model_dump(exclude_none=True),
            "host-b": config.host_b.model_dump(exclude_none=True),
        }
    return {host: _with_variables(host, tables.get(host, {})) for host in HOSTS}


def secret_files(table: Table) -> list[Path]:
    """Return the files that a table names."""
    return [_secret_path(table[key]) for name in SECRETS if (key := f"{name}_file") in table]


def _with_variables(host: str, table: Table) -> Table:
    """Return the table with values of variables; a secret and its file replace each other."""
    merged = dict(table)
    prefix = f"QD_{host.replace('-', '_').upper()}_"
    for name in ("api_url", *SECRETS):
        keys = (name, f"{name}_file") if name in SECRETS else (name,)
        values = {key: text for key in keys if (text := os.environ.get(prefix + key.upper()))}
        if len(values) > 1:
            raise _config_error(
                f"{prefix}{name.upper()} and its _FILE are both set", "Set one of them."
            )
        if values:
            for key in keys:
                merged.pop(key, None)
            merged |= values
    return merged


def _host_settings(host: str, table: Table) -> "HostSettings":
    from quarterdeck.service.hosts.settings import HostSettings

    api_url = table.get("api_url")
    if api_url is not None and not api_url.startswith(("http://", "https://")):
        raise _config_error(f"{host}: api_url is not an http(s) URL", "Correct it.")
    return HostSettings(
        webhook_secret=_read_secret(host, table, "webhook_secret"),
        api_url=api_url and api_url.rstrip("/"),
        token=_read_secret(host, table, "token"),
    )


def _read_secret(host: str, table: Table, name: str) -> str | None:
    text = table.get(name)
    named = table.get(f"{name}_file")
    if named is not None:
        try:
            text = read_file(_secret_path(named)).decode()
        except (OSError, UnicodeDecodeError) as e:
            why = e.strerror if isinstance(e, OSError) else "it is not UTF-8"
            raise _config_error(
                f"{host}: {name}_file cannot be read: {why}", f"Look at {named}."
            ) from e
    if text is None:
        return None
    if not text.strip():
        raise _config_error(f"{host}: {name} is empty", "Give it, or leave it out.")
    return text.strip()


def _secret_path(named: str) -> Path:
    """Return a path; a relative one is relative to the configuration file's directory."""
    return config_path().parent / Path(named).expanduser()


def _config_error(problem: str, step: str) -> ConfigError:
    return ConfigError(f"{problem}.", step)
