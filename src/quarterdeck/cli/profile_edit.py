"""Adds a service to the configuration file, and leaves all else in it as it is."""

import json
from pathlib import Path

from quarterdeck.cli.config_text import config_text, put_config, reads_as
from quarterdeck.cli.errors import ConfigFault
from quarterdeck.cli.kept_keys import forget_key, keep_key

SOCKET = "unix:"


def add_profile(path: Path, name: str, address: str, key: str | None, kept: Path) -> None:
    """Adds `[profiles.NAME]`; its key goes to `kept`, where a login would keep it.

    A key that is there from an earlier profile of this name was another service's: it is replaced, or
    removed when there is no new one.

    Raises:
        ConfigFault: the address is none, or a file cannot be read or written.
    """
    field, value = _place(address)
    before, wanted = config_text(path)
    profiles = wanted.setdefault("profiles", {})
    if isinstance(profiles, dict):
        profiles[name] = {field: value}
    after = with_profile(before, name, field, value)
    if not reads_as(after, wanted):
        raise ConfigFault(
            f"{path} is written in a way that cannot be changed from here.",
            f"Add a table [profiles.{name}] by hand.",
        )
    if key is None:
        forget_key(kept)
    else:
        keep_key(kept, key)
    put_config(path, after)


def with_profile(text: str, name: str, field: str, value: str) -> str:
    """The text of a file with one more table."""
    lines = text.splitlines()
    written = f"{field} = {json.dumps(value, ensure_ascii=False)}"
    return "\n".join([*lines, *([""] if lines else []), f"[profiles.{name}]", written, ""])


def _place(address: str) -> tuple[str, str]:
    """The field of a profile that an address goes to."""
    if address.startswith(SOCKET):
        return "socket", address.removeprefix(SOCKET)
    from httpx import URL, InvalidURL

    try:
        host = URL(address).host
    except InvalidURL as e:
        raise ConfigFault(f"{address} is no address: {e}.") from e
    if not host:
        raise ConfigFault(f"{address} is no address: it names no host.")
    return "url", address
