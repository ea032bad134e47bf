"""What a person wrote to a replica before, to go back to: newest last."""

from uuid import UUID

from quarterdeck.store.disk import ClientDisk

MOST = 200
LONGEST = 100_000
"""Characters of a prompt that is kept: a longer one was pasted, and stands in the transcript."""


class PromptHistory:
    """The prompts of one replica, and how far back the person is in them."""

    def __init__(self, disk: ClientDisk, replica_id: UUID) -> None:
        self._disk = disk
        self._replica_id = replica_id
        self._prompts = disk.prompts(replica_id)
        self._at: int | None = None
        self._unsent = ""

    def add(self, text: str) -> None:
        """The person sent this.

        Raises:
            OSError: the disk does not take it; it is still known until the cockpit ends.
        """
        self.leave()
        text = text.strip()
        if not text or len(text) > LONGEST:
            return
        others = [known for known in self._prompts if known != text]
        self._prompts = [*others[-MOST + 1 :], text]
        self._disk.save_prompts(self._replica_id, self._prompts)

    def back(self, current: str) -> str | None:
        """The prompt before; None when there is none. `current` is what comes after the newest."""
        if self._at is None:
            self._unsent = current
        at = len(self._prompts) if self._at is None else self._at
        if at == 0:
            return None
        self._at = at - 1
        return self._prompts[self._at]

    def forward(self) -> str | None:
        """The prompt after, at last what stood there before; None when nowhere back."""
        if self._at is None:
            return None
        self._at += 1
        if self._at < len(self._prompts):
            return self._prompts[self._at]
        self._at = None
        return self._unsent

    def leave(self) -> None:
        """The person writes on: what stands there is their own text now."""
        self._at = None
