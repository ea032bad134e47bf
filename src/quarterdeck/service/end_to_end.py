"""Headers that are for the whole way; the others are for one connection and stay there."""

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
    """The headers to pass on: none of one connection, nor what `Connection` names as such."""
    every = list(headers)
    named = {
        word.strip().lower()
        for name, value in every
        if name.lower() == b"connection"
        for word in value.split(b",")
    }
    dropped = _OF_A_CONNECTION | named
    return [(name, value) for name, value in every if name.lower() not in dropped]
