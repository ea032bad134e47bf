"""Keeps what stands in a composer on disk, a moment after the last key."""

import asyncio
from uuid import UUID

from quarterdeck.store.disk import ClientDisk

DELAY = 0.5
"""Seconds after the last key until a draft is written."""


class DraftKeeper:
    """The draft of one chat."""

    def __init__(self, disk: ClientDisk, chat_id: UUID) -> None:
        self._disk = disk
        self._chat_id = chat_id
        self.text = self._saved = disk.draft(chat_id)

    async def keep_soon(self, text: str) -> None:
        """Writes after the delay; to be canceled when another key comes.

        Raises:
            OSError: the disk does not take it.
        """
        self.text = text
        await asyncio.sleep(DELAY)
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
