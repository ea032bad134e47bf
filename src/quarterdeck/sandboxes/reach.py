"""Judges where git connects to, and keeps it there."""

import asyncio
import re

from quarterdeck.local.addresses import AddressRefusedError, numeric_address
from quarterdeck.local.lookups import look_up
from quarterdeck.sandboxes.errors import NotARepositoryError
from quarterdeck.sandboxes.sources import local_path, without_password

_PORTS = {"http": 80, "https": 443}
_HOST = r"(?P<host>[A-Za-z0-9_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f]*:[0-9A-Fa-f:.]*\])"
_USER = r"[^@:/\\?#\[\]\s\0-\x20\x7f]+"
_PASSWORD = r"(?::[^@/\\?#\[\]\s\0-\x20\x7f]*)?"
_PORT = r"(?::(?P<port>[0-9]{1,5}))?"
_HTTP = re.compile(f"(?:{_USER}{_PASSWORD}@)?{_HOST}{_PORT}")
_SSH = re.compile(f"(?:{_USER}@)?{_HOST}{_PORT}")
_SCP = re.compile(f"(?:{_USER}@)?{_HOST}(?P<port>)")
"""The only forms of what names a host. Other programs read every other form in their own way: curl skips
slashes before a host, SSH takes what follows the last `@`, and both drop what they do not know."""
_NUMBER = r"(?:[0-9]+|0[xX][0-9A-Fa-f]*)"
_NUMBER_AT_END = re.compile(rf"(?:.*\.)?{_NUMBER}")
"""A name that some programs take for an address; for SSH it may be an alias."""
_NUMBERS = re.compile(rf"{_NUMBER}(?:\.{_NUMBER})*")
_COMMAND = re.compile(r"[\s\0'`\";&<>|(){}$\\]")
"""No part of a user or host. A command of the user's SSH configuration may contain either, and OpenSSH
before 9.6 gives them to the shell as they are."""
_NOWHERE = "255.255.255.255"
"""Cannot be connected to. For a name that does not resolve now, but might for git a moment later; a
proxy, which resolves names itself, is not affected."""


async def network_options(url: str, private: bool) -> tuple[str, ...]:
    """Return options with which git reaches an address only where it was judged; none for a path.

    HTTP connects to the judged addresses and follows no redirection. SSH resolves the host again,
    and an alias of the user's SSH configuration is left to it.

    Raises:
        NotARepositoryError: the address is not supported, or its host may not be reached, or can be
            read in several ways.
    """
    if await asyncio.to_thread(local_path, url) is not None:
        return ()
    scheme, host, port = _read_host(url.strip())
    try:
        addresses = await look_up(host, port, private)
    except AddressRefusedError as e:
        raise NotARepositoryError(f"{host} may not be reached.", str(e)) from e
    except OSError:  # also when its name server does not answer
        addresses = [_NOWHERE]
    if scheme not in _PORTS:
        return ()
    if ":" in host:  # an address, which curl does not take for a name
        return ("-c", "http.followRedirects=false")
    places = ",".join(f"[{address}]" if ":" in address else address for address in addresses)
    pinned = f"{host}:{port or _PORTS[scheme]}:{places}"
    return ("-c", "http.followRedirects=false", "-c", f"http.curloptResolve={pinned}")


def _read_host(text: str) -> tuple[str, str, int]:
    """Return the scheme, the host without brackets, and the port of an address; 0 is the usual port.

    Raises:
        NotARepositoryError: the host can be read in several ways, or could be a command.
    """
    before, mark, rest = text.partition("://")
    scheme = before.lower() if mark else "ssh"
    named = re.split(r"[/?#]", rest, maxsplit=1)[0] if mark else text.partition(":")[0]
    shown = without_password(text)
    # git and curl read %XX and letters beyond ASCII in a host's name, each in its own way.
    suspect = named.rpartition("@")[2] if scheme in _PORTS else named
    if "%" in suspect or not suspect.isascii():
        raise NotARepositoryError(
            f"{shown} cannot be used. Write the host name in ASCII, without %."
        )
    if scheme not in _PORTS and _COMMAND.search(named):
        raise NotARepositoryError(
            f"{shown} cannot be used: its user or host has characters of a shell."
        )
    form = _HTTP if scheme in _PORTS else _SSH if mark else _SCP
    found = form.fullmatch(named)
    host = found["host"].strip("[]").lower() if found else ""
    port = found["port"] if found else None
    is_path = not mark or rest[len(named) :][:1] in ("", "/")
    numbers = _NUMBER_AT_END if scheme in _PORTS else _NUMBERS
    is_number = ":" in host or numbers.fullmatch(host)
    if (
        not is_path
        or not host
        or (is_number and numeric_address(host) is None)
        or (port and not 0 < int(port) < 1 << 16)
    ):
        raise NotARepositoryError(
            f"{shown} cannot be used: it has to name one host, such as https://host.example/name.git "
            "or git@host.example:name.git."
        )
    return scheme, host, int(port or 0)
