"""Keeps what stands in a composer on disk, a moment after a key: at most that moment is ever lost."""

import asyncio
from uuid import UUID

from quarterdeck.store.disk import ClientDisk

DELAY = 0.5
"""Seconds from the first key that is not kept yet until it is."""


class DraftKeeper:
    """The draft of one chat."""

    def __init__(self, disk: ClientDisk, chat_id: UUID) -> None:
        self._disk = disk
        self._chat_id = chat_id
        self.text = self._saved = disk.draft(chat_id)
        self._waiting = False

    async def keep_soon(self, text: str) -> None:
        """Writes after the delay, once for all that is typed meanwhile.

        The delay is not begun anew by each key: who types without a pause is kept as well.

        Raises:
            OSError: the disk does not take it.
        """
        self.text = text
        if self._waiting:
            return
        self._waiting = True
        try:
            await asyncio.sleep(DELAY)
        finally:
            self._waiting = False
        await asyncio.to_thread(self.keep)

    def keep(self) -> None:
        """Writes now, if there is anything new.

        Raises:
            OSError: the disk does not take it.
        """
        text = self.text
        if text != self._saved:
            self._disk.save_draft(self._chat_id, text)
            self._saved = text
