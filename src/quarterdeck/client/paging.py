"""Lists that are answered page by page."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Protocol, TypeVar
from uuid import UUID

from quarterdeck.client.errors import ProtocolError

MOST_PAGES = 1_000
"""Most pages that are read of one list: a server may report more of them without end."""


class _Record(Protocol):
    @property
    def id(self) -> UUID: ...


Record = TypeVar("Record", bound=_Record)


async def every_record(
    read: Callable[[int], Awaitable[tuple[Sequence[Record], int]]],
) -> AsyncGenerator[Record]:
    """Yield every record once. `read` returns the records of a page, from 1, and the number of pages.

    Raises:
        ProtocolError: the list has too many pages.
    """
    seen: set[UUID] = set()
    for page in range(1, MOST_PAGES + 1):
        records, pages = await read(page)
        for record in records:
            if record.id not in seen:
                seen.add(record.id)
                yield record
        if page >= pages or not records:
            return
    raise endless()


def endless() -> ProtocolError:
    """Return the error of a list without an end."""
    return ProtocolError(f"The list has more than {MOST_PAGES:,} pages.")
