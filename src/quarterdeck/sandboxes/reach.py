"""Judges where git connects to, and keeps it there."""

import asyncio
import re
from urllib.parse import urlsplit

from quarterdeck.local.addresses import AddressRefusedError, resolve
from quarterdeck.sandboxes.errors import NotARepositoryError
from quarterdeck.sandboxes.sources import local_path, without_password

_PORTS = {"http": 80, "https": 443}
_SCP_HOST = re.compile(r"(?:[^@/:]+@)?(\[[^\]]+\]|[^@/:]+):")
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
    text = url.strip()
    try:
        parts = urlsplit(text) if "://" in text else None
        host, port = _scp_host(text) if parts is None else (parts.hostname or "", parts.port)
    except ValueError as e:
        raise NotARepositoryError(f"{without_password(text)} is not a git URL: {e}.") from e
    scheme = "ssh" if parts is None else parts.scheme.lower()
    # git and curl read %XX and letters beyond ASCII in a host's name, each in its own way.
    named = host if parts is None or scheme in _PORTS else parts.netloc
    if "%" in named or not host.isascii():
        raise NotARepositoryError(
            f"{without_password(text)} cannot be used. Write the host name in ASCII, without %."
        )
    if scheme not in _PORTS and _COMMAND.search(named):
        raise NotARepositoryError(
            f"{without_password(text)} cannot be used: its user or host has characters of a shell."
        )
    try:
        addresses = await asyncio.to_thread(resolve, host, port or 0, private)
    except AddressRefusedError as e:
        raise NotARepositoryError(f"{host} may not be reached.", str(e)) from e
    except OSError:
        addresses = [_NOWHERE]
    if scheme not in _PORTS:
        return ()
    places = ",".join(f"[{address}]" if ":" in address else address for address in addresses)
    pinned = f"{host}:{port or _PORTS[scheme]}:{places}"
    return ("-c", "http.followRedirects=false", "-c", f"http.curloptResolve={pinned}")


def _scp_host(text: str) -> tuple[str, None]:
    match = _SCP_HOST.match(text)
    return (match[1] if match else ""), None
