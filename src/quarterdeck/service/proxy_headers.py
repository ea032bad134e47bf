"""Headers of forwarded requests and responses."""

from collections.abc import Iterable

Header = tuple[bytes, bytes]

_OF_A_CONNECTION = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)


def end_to_end(headers: Iterable[Header]) -> list[Header]:
    """Return the headers to pass on: no hop-by-hop headers, nor those that `Connection` names."""
    every = list(headers)
    named = {
        word.strip().lower()
        for name, value in every
        if name.lower() == b"connection"
        for word in value.split(b",")
    }
    dropped = _OF_A_CONNECTION | named
    return [(name, value) for name, value in every if name.lower() not in dropped]


MARK = b"x-quarterdeck-forwarded"
"""Names the home that has passed a request on; it is never passed on twice."""

_OF_A_REQUEST = frozenset((b"host", b"expect", MARK))


def for_owner(headers: Iterable[Header], home_id: str) -> list[Header]:
    """Return a request's headers for the owner: the caller's own, and the forwarding service.

    `Via` also prevents the owner from treating a caller as the person who runs it.
    """
    kept = [(name, value) for name, value in _lowered(headers) if name not in _OF_A_REQUEST]
    return [*kept, (b"via", b"1.1 quarterdeck"), (MARK, home_id.encode())]


def for_caller(headers: Iterable[Header]) -> list[Header]:
    """Return a response's headers for the caller."""
    return _lowered(headers)


def _lowered(headers: Iterable[Header]) -> list[Header]:
    return [(name.lower(), value) for name, value in end_to_end(headers)]
