"""Addresses of previews.

    http://127.0.0.1:PORT/TOKEN/...     returned to users: needs no name resolution
    http://TOKEN.localhost:PORT/...     target of redirects, so that absolute paths work

By host each preview has an origin of its own; by path all share one, and `headers` restricts them.
"""

import re
import secrets
from dataclasses import dataclass

HOST = "127.0.0.1"

_BY_HOST = re.compile(r"([0-9a-f]{32})\.localhost(?::\d+)?", re.IGNORECASE)
_PORT = re.compile(r":[0-9]{1,5}$")
_BY_PATH = re.compile(r"/([0-9a-f]{32})(?=[/?]|$)")


@dataclass(frozen=True)
class PreviewAddress:
    """The target of a request. `base` is the path that was removed from `target`, if any."""

    token: str
    target: str
    base: str = ""


def new_token() -> str:
    """Return 128 random bits, as one label of a host's name."""
    return secrets.token_hex(16)


def public_url(port: int, token: str) -> str:
    """Return the URL of a preview."""
    return f"http://{HOST}:{port}/{token}/"


def browser_url(host: str, address: PreviewAddress) -> str:
    """Return the same page under the preview's own host; `host` is the request's."""
    port = _PORT.search(host)
    return f"http://{address.token}.localhost{port[0] if port else ''}{address.target}"


def read_address(host: str, target: str) -> PreviewAddress | None:
    """Return the preview that a request's host and target name; None when they name none."""
    if by_host := _BY_HOST.fullmatch(host):
        return PreviewAddress(by_host[1].lower(), target)
    if by_path := _BY_PATH.match(target):
        rest = target[by_path.end() :]
        return PreviewAddress(by_path[1], rest if rest.startswith("/") else f"/{rest}", by_path[0])
    return None
