"""Which source hosts are set up here, and whether others can read their secrets."""

import stat
from collections.abc import Generator
from pathlib import Path

from quarterdeck.cli.checks.finding import Finding, fail, ok, warn
from quarterdeck.cli.config_path import config_path
from quarterdeck.cli.errors import ConfigFault
from quarterdeck.cli.source_hosts import HOSTS, SECRETS, hosts_settings, read_tables, secret_files

OTHERS = 0o077


def check_hosts() -> Generator[Finding]:
    """One line for each host; one more for each file with a secret that is open to others."""
    try:
        tables, settings = read_tables(), hosts_settings()
    except ConfigFault as e:
        yield fail("source hosts", e.message, e.next_step)
        return
    for host in HOSTS:
        found = settings.of(host)
        told = [
            "webhooks are taken" if found.webhook_secret else "no webhook secret",
            "checks are written" if found.writable else "checks are kept here alone",
        ]
        set_up = found.webhook_secret or found.token or found.api_url
        yield ok(host, "; ".join(told) if set_up else "not set up")
        for path in secret_files(tables[host]):
            yield from _privacy(host, path)
    if _holds_a_secret():
        yield from _privacy("config", config_path())


def _holds_a_secret() -> bool:
    """Whether the configuration file itself holds one, whatever variables say."""
    if not config_path().exists():
        return False
    from quarterdeck.cli.config import read_config

    config = read_config(config_path())
    tables = (config.host_a.model_dump(), config.host_b.model_dump())
    return any(table[name] for table in tables for name in SECRETS)


def _privacy(name: str, path: Path) -> Generator[Finding]:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & OTHERS:
        text = f"{path} holds a secret and is open to others (mode {mode:o})"
        yield warn(name, text, f"Run: chmod 600 {path}")
