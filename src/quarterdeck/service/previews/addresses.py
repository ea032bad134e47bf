"""The address of a preview.

http://127.0.0.1:PORT/TOKEN/...     what is handed out: needs no name to be looked up
http://TOKEN.localhost:PORT/...     where browsers are sent, so that absolute paths work
"""

import re
import secrets
from dataclasses import dataclass

HOST = "127.0.0.1"

_BY_HOST = re.compile(r"([0-9a-f]{32})\.localhost(?::\d+)?", re.IGNORECASE)
_BY_PATH = re.compile(r"/([0-9a-f]{32})(?=[/?]|$)")


@dataclass(frozen=True)
class Address:
    """What a request is for. `base` is the path that was taken off `target`, if any."""

    token: str
    target: str
    base: str = ""


def new_token() -> str:
    """128 bits of chance, as one label of a host's name."""
    return secrets.token_hex(16)


def public_url(port: int, token: str) -> str:
    """The address that is handed out."""
    return f"http://{HOST}:{port}/{token}/"


def browser_url(host: str, address: Address) -> str:
    """The same page under a host of its own; `host` is the request's."""
    _, colon, port = host.rpartition(":")
    return f"http://{address.token}.localhost{colon}{port}{address.target}"


def read_address(host: str, target: str) -> Address | None:
    """The preview that a request's host and target name; None when they name none."""
    if by_host := _BY_HOST.fullmatch(host):
        return Address(by_host[1].lower(), target)
    if by_path := _BY_PATH.match(target):
        rest = target[by_path.end() :]
        return Address(by_path[1], rest if rest.startswith("/") else f"/{rest}", by_path[0])
    return None
