"""Headers of previews, as a program in a workspace and its client get them.

All previews have one origin where their address is a path. Anything that a browser keeps for an
origin or a host would there be kept for the programs of other replicas too. So a page by path is
sandboxed, its answers cannot act on the origin, and its cookies have names of their own: a browser
sends the cookies of a host to all ports of it, thus those of other servers on this machine as well.
"""

from collections.abc import Iterable

from quarterdeck.service.http_protocol import Header, end_to_end
from quarterdeck.service.previews.addresses import PreviewAddress

Headers = list[Header]

_OURS = frozenset((b"host", b"x-forwarded-host", b"x-forwarded-proto", b"x-forwarded-prefix"))
_OF_A_SERVER = frozenset(
    (
        b"alt-svc",
        b"expect-ct",
        b"public-key-pins",
        b"public-key-pins-report-only",
        b"strict-transport-security",
    )
)
"""About how the server is connected to, and that is the proxy."""
_OF_AN_ORIGIN = _OF_A_SERVER | frozenset(
    (
        b"accept-ch",
        b"clear-site-data",
        b"nel",
        b"origin-agent-cluster",
        b"report-to",
        b"reporting-endpoints",
        b"sec-session-registration",
        b"secure-session-registration",
        b"service-worker-allowed",
        b"set-login",
        b"use-as-dictionary",
    )
)
"""Kept by a browser for all pages of an origin, or for a host."""
_SANDBOX = (
    b"Content-Security-Policy",
    b"sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts",
)
"""Gives a page an origin of its own: no storage, no service workers, no requests as another page."""


def value_of(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    """Return the first value of a header, or an empty one."""
    return next((value for key, value in headers if key.lower() == name), b"")


def for_upstream(headers: Headers, address: PreviewAddress, port: int) -> Headers:
    """Return a request's headers for the program that listens in the workspace."""
    host = value_of(headers, b"host")
    passed = [
        (key, value)
        for key, value in _own_cookies(_passed(headers), address)
        if key.lower() not in _OURS
    ]
    passed += [
        (b"Host", f"localhost:{port}".encode()),
        (b"X-Forwarded-Host", host),
        (b"X-Forwarded-Proto", b"http"),
    ]
    if address.base:
        passed.append((b"X-Forwarded-Prefix", address.base.encode()))
    if _has_body(headers):
        passed += [header for header in headers if header[0].lower() == b"transfer-encoding"]
    return passed + _upgrade(headers, b"Upgrade")


def for_client(headers: Headers, address: PreviewAddress, switching: bool) -> Headers:
    """Return an answer's headers; redirects within the preview and cookies are adapted."""
    dropped = _OF_AN_ORIGIN if address.base else _OF_A_SERVER
    passed = [
        (key, _inside(key, value, address))
        for key, value in _passed(headers)
        if key.lower() not in dropped
    ]
    if switching:
        return passed + _upgrade(headers, b"Upgrade")
    return [*passed, _SANDBOX] if address.base else passed


def _passed(headers: Headers) -> Headers:
    """Return the headers to pass on, without a length that does not apply to a chunked body."""
    passed = end_to_end(headers)
    if not _has_body(headers):
        return passed
    return [(key, value) for key, value in passed if key.lower() != b"content-length"]


def _has_body(headers: Headers) -> bool:
    return bool(value_of(headers, b"transfer-encoding"))


def _upgrade(headers: Headers, connection: bytes) -> Headers:
    wanted = value_of(headers, b"upgrade")
    return [(b"Upgrade", wanted), (b"Connection", connection)] if wanted else []


def _inside(key: bytes, value: bytes, address: PreviewAddress) -> bytes:
    base = address.base.encode()
    match key.lower():
        case b"location" if value.startswith(b"/") and not value.startswith(b"//"):
            return base + value
        case b"set-cookie":
            return _own_cookie(address, value)
        case _:
            return value


def _cookie_prefix(address: PreviewAddress) -> bytes:
    """Return the prefix of a preview's cookie names; with a host of its own it needs none."""
    return f"qd-{address.token[:8]}-".encode() if address.base else b""


def _own_cookie(address: PreviewAddress, cookie: bytes) -> bytes:
    """Return a cookie that is sent to this preview alone: all have one host, or hosts of one domain."""
    base = address.base.encode()
    kept: list[bytes] = []
    path = b"/" if base else b""
    for part in cookie.split(b";"):
        name, _, value = part.strip().partition(b"=")
        match name.strip().lower() if kept else b"":
            case b"path":
                path = value.strip() if value.strip().startswith(b"/") else path
            case b"domain":
                pass
            case _:
                kept.append(part.strip())
    kept[0] = _cookie_prefix(address) + kept[0]
    return b"; ".join([*kept, b"Path=" + base + path] if path else kept)


def _own_cookies(headers: Headers, address: PreviewAddress) -> Headers:
    """Return a request's headers with the cookies of this preview only, in one header."""
    prefix = _cookie_prefix(address)
    if not prefix:
        return headers
    own = [
        one.strip().removeprefix(prefix)
        for key, value in headers
        if key.lower() == b"cookie"
        for one in value.split(b";")
        if one.strip().startswith(prefix)
    ]
    others = [header for header in headers if header[0].lower() != b"cookie"]
    return [*others, (b"Cookie", b"; ".join(own))] if own else others
