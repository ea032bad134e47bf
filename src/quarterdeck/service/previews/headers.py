"""Headers of requests and answers as they are passed on: without what is for one hop only."""

from collections.abc import Iterable

from quarterdeck.service.end_to_end import Header, end_to_end
from quarterdeck.service.previews.addresses import Address

Headers = list[Header]

_OURS = frozenset((b"host", b"x-forwarded-host", b"x-forwarded-proto", b"x-forwarded-prefix"))


def value_of(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    """The first value of a header, or nothing."""
    return next((value for key, value in headers if key.lower() == name), b"")


def for_upstream(headers: Headers, address: Address, port: int) -> Headers:
    """A request's headers for the program that listens in the workspace."""
    host = value_of(headers, b"host")
    passed = [(key, value) for key, value in end_to_end(headers) if key.lower() not in _OURS]
    passed += [
        (b"Host", f"localhost:{port}".encode()),
        (b"X-Forwarded-Host", host),
        (b"X-Forwarded-Proto", b"http"),
    ]
    if address.base:
        passed.append((b"X-Forwarded-Prefix", address.base.encode()))
    if _has_body(headers):
        passed += [one for one in headers if one[0].lower() == b"transfer-encoding"]
    return passed + _upgrade(headers, b"Upgrade")


def for_client(headers: Headers, address: Address, switching: bool) -> Headers:
    """An answer's headers; a redirect within the preview stays in it."""
    passed = [(key, _inside(key, value, address)) for key, value in end_to_end(headers)]
    return passed + (_upgrade(headers, b"Upgrade") if switching else [])


def _has_body(headers: Headers) -> bool:
    return bool(value_of(headers, b"transfer-encoding"))


def _upgrade(headers: Headers, connection: bytes) -> Headers:
    wanted = value_of(headers, b"upgrade")
    return [(b"Upgrade", wanted), (b"Connection", connection)] if wanted else []


def _inside(key: bytes, value: bytes, address: Address) -> bytes:
    local = value.startswith(b"/") and not value.startswith(b"//")
    if key.lower() == b"location" and address.base and local:
        return address.base.encode() + value
    return value
