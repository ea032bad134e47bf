"""Up to where an engine's journal has been stored."""

import asyncio


class JournalMark:
    """Follows the relay, so that who changed something in the engine can wait to see it here."""

    def __init__(self) -> None:
        self._index = 0
        self._moved = asyncio.Event()

    def put(self, index: int) -> None:
        """Everything up to this index is stored."""
        self._index = index
        self._moved.set()
        self._moved = asyncio.Event()

    async def reached(self, index: int) -> None:
        """Returns once everything up to an index is stored."""
        while self._index < index:
            await self._moved.wait()
