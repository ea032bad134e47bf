"""Drafts, earlier prompts and attachments."""

import asyncio
import base64
import contextlib
import shlex
from pathlib import Path
from uuid import UUID

from quarterdeck.store.disk import ClientDisk
from quarterdeck.wire.chats import Base64Source, Image, media_type_of

DELAY = 0.5
"""Seconds from the first unsaved key until the draft is saved."""


class DraftKeeper:
    """The draft of one chat."""

    def __init__(self, disk: ClientDisk, chat_id: UUID) -> None:
        self._disk = disk
        self._chat_id = chat_id
        self.text = self._saved = disk.draft(chat_id)
        self._waiting = False

    async def keep_soon(self, text: str) -> None:
        """Write after the delay, once for everything typed meanwhile.

        The delay is not restarted by each key: text typed without a pause is saved as well.

        Raises:
            OSError: it cannot be written.
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
        """Write now, if the text changed.

        Raises:
            OSError: it cannot be written.
        """
        text = self.text
        if text != self._saved:
            self._disk.save_draft(self._chat_id, text)
            self._saved = text


MOST = 200
LONGEST = 100_000
"""Characters of a prompt that is kept: a longer one was pasted, and is in the transcript."""


class PromptHistory:
    """The prompts of one replica, and the person's position in them."""

    def __init__(self, disk: ClientDisk, replica_id: UUID) -> None:
        self._disk = disk
        self._replica_id = replica_id
        self._prompts = disk.prompts(replica_id)
        self._at: int | None = None
        self._unsent = ""

    def add(self, text: str) -> None:
        """Add a text that the person sent.

        Raises:
            OSError: it cannot be written; it is in the history until the cockpit ends.
        """
        self.leave()
        text = text.strip()
        if not text or len(text) > LONGEST:
            return
        others = [known for known in self._prompts if known != text]
        self._prompts = [*others[-MOST + 1 :], text]
        self._disk.save_prompts(self._replica_id, self._prompts)

    def back(self, current: str) -> str | None:
        """Return the previous prompt; None when there is none. `current` is the text after the newest."""
        if self._at is None:
            self._unsent = current
        at = len(self._prompts) if self._at is None else self._at
        if at == 0:
            return None
        self._at = at - 1
        return self._prompts[self._at]

    def forward(self) -> str | None:
        """Return the next prompt, finally the person's own text; None when not in the history."""
        if self._at is None:
            return None
        self._at += 1
        if self._at < len(self._prompts):
            return self._prompts[self._at]
        self._at = None
        return self._unsent

    def leave(self) -> None:
        """Return to the person's own text, which is being edited."""
        self._at = None


class NotReadableError(Exception):
    """A file cannot be attached; the text says why."""


def home_path(typed: str) -> Path:
    """Return a typed path, with `~` as the home directory, where that is known."""
    try:
        return Path(typed).expanduser()
    except RuntimeError:
        return Path(typed)


def file_path(typed: str) -> Path:
    """Return a typed path, or that of a file dropped on the terminal, which inserts it quoted or escaped."""
    path = home_path(typed)
    with contextlib.suppress(ValueError, OSError):
        words = shlex.split(typed)
        if len(words) == 1 and words[0] != typed and not path.exists():
            return home_path(words[0])
    return path


def read_file(path: Path) -> bytes:
    """Return the content of a file.

    Raises:
        NotReadableError: it does not exist, is not a file, or is too large.
    """
    from quarterdeck.wire.files import CANVAS_LIMIT

    try:
        # Reading a pipe or a device might never end.
        if path.exists() and not path.is_file():
            raise NotReadableError("Not a file.")
        if path.stat().st_size > CANVAS_LIMIT:
            raise NotReadableError(f"Larger than {CANVAS_LIMIT >> 20} MB.")
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise NotReadableError(f"Cannot be read: {reason}.") from error
    return content


def image_of(content: bytes) -> Image | None:
    """Return the content as an image of a message; None when it is not an image of a known type."""
    media_type = media_type_of(content)
    if media_type is None:
        return None
    data = base64.b64encode(content).decode()
    return Image(source=Base64Source(type="base64", media_type=media_type, data=data))
