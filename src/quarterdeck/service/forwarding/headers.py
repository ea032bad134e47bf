"""Headers on the way from one service to another. What belongs to one connection stays there."""

from collections.abc import Iterable

from quarterdeck.service.end_to_end import Header, end_to_end

MARK = b"x-quarterdeck-forwarded"
"""Says which home has passed a request on; it is never passed on twice."""

_OF_A_REQUEST = frozenset((b"host", b"expect", MARK))


def for_owner(headers: Iterable[Header], home_id: str) -> list[Header]:
    """A request's headers as the owner gets them: the caller's own, and who passes them on.

    `Via` also keeps the owner from taking a caller for the person who runs it.
    """
    kept = [(name, value) for name, value in _lowered(headers) if name not in _OF_A_REQUEST]
    return [*kept, (b"via", b"1.1 quarterdeck"), (MARK, home_id.encode())]


def for_caller(headers: Iterable[Header]) -> list[Header]:
    """An answer's headers as the caller gets them."""
    return _lowered(headers)


def _lowered(headers: Iterable[Header]) -> list[Header]:
    return [(name.lower(), value) for name, value in end_to_end(headers)]
