"""What the cockpit keeps on disk: drafts, unacknowledged messages, what was seen.

Each thing is one small JSON file, written under another name, synced and renamed into place, so that
a crash leaves the old one or the new one. A file that cannot be read is set aside, never an end.
"""

import contextlib
import json
import os
from datetime import datetime
from pathlib import Path
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, TypeAdapter, ValidationError

from quarterdeck.wire.base import Timestamp, utc_now
from quarterdeck.wire.messages import Image

_PROMPTS = TypeAdapter(list[str])


class Outgoing(BaseModel):
    """A message on its way. `unsent`: the service has not got it; `unsure`: it may have."""

    key: str
    replica_id: UUID
    chat_id: UUID | None
    text: str
    plan_mode: bool = False
    goal_mode: bool = False
    model: str | None = None
    images: list[Image] = []
    uploads: list[str] = []
    """Canvas uploads that wait for the replica, by their ids."""
    behind: list[UUID] | None = None
    """What it stood behind in the queue before it was taken back and edited."""
    created_at: Timestamp
    state: Literal["sending", "unsent", "unsure"] = "sending"
    problem: str | None = None


class ClientDisk:
    """The directory of one endpoint's drafts, outbox and seen marks.

    Raises:
        OSError: from every writing method, when the disk does not take it.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._outbox = directory / "outbox"
        self._drafts = directory / "drafts"
        self._comments = directory / "comments"
        self._prompts = directory / "prompts"

    def _write(self, path: Path, text: str) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)

    def save_draft(self, chat_id: UUID, text: str) -> None:
        """Keeps what stands in a chat's composer; empty text removes it."""
        path = self._drafts / f"{chat_id}.txt"
        if text:
            self._write(path, text)
        else:
            path.unlink(missing_ok=True)

    def draft(self, chat_id: UUID) -> str:
        """The kept draft of a chat, or an empty text."""
        try:
            return (self._drafts / f"{chat_id}.txt").read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""

    def save_comments(self, replica_id: UUID, text: str) -> None:
        """Keeps the comments on a replica's changes; empty text removes them."""
        path = self._comments / f"{replica_id}.json"
        if text:
            self._write(path, text)
        else:
            path.unlink(missing_ok=True)

    def comments(self, replica_id: UUID) -> str:
        """The kept comments of a replica, or an empty text."""
        try:
            return (self._comments / f"{replica_id}.json").read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""

    def set_comments_aside(self, replica_id: UUID) -> None:
        """Comments that cannot be read are out of the way of new ones."""
        path = self._comments / f"{replica_id}.json"
        with contextlib.suppress(OSError):
            path.rename(path.with_suffix(".unreadable"))

    def save_prompts(self, replica_id: UUID, prompts: list[str]) -> None:
        """Keeps what a person wrote to a replica, oldest first."""
        self._write(self._prompts / f"{replica_id}.json", json.dumps(prompts))

    def prompts(self, replica_id: UUID) -> list[str]:
        """What a person wrote to a replica, oldest first."""
        try:
            return _PROMPTS.validate_json((self._prompts / f"{replica_id}.json").read_bytes())
        except (OSError, ValidationError):
            return []

    def save_outgoing(self, message: Outgoing) -> None:
        """Keeps a message until `forget_outgoing`."""
        self._write(self._outbox / f"{message.key}.json", message.model_dump_json())

    def forget_outgoing(self, key: str) -> None:
        """The service has it, or the person dropped it."""
        (self._outbox / f"{key}.json").unlink(missing_ok=True)

    def set_aside(self, key: str) -> Path:
        """Keeps a message that can never be delivered out of the way, as a file for the person."""
        path = self._outbox / f"{key}.json"
        aside = path.with_suffix(".undelivered")
        path.rename(aside)
        return aside

    def outgoing(self) -> list[Outgoing]:
        """Messages kept from before, oldest first. `sending` ones are unsure now."""
        found: list[Outgoing] = []
        for path in self._outbox.glob("*.json"):
            try:
                message = Outgoing.model_validate_json(path.read_bytes())
            except (OSError, ValidationError):
                with contextlib.suppress(OSError):
                    path.rename(path.with_suffix(".unreadable"))
                continue
            if message.state == "sending":
                message.state = "unsure"
            found.append(message)
        return sorted(found, key=lambda message: message.created_at)

    def save_seen(self, seen: dict[UUID, datetime]) -> None:
        """Keeps when each replica was last looked at."""
        text = json.dumps({str(key): moment.isoformat() for key, moment in seen.items()})
        self._write(self._directory / "seen.json", text)

    def keep_seen(self, seen: dict[UUID, datetime]) -> None:
        """As `save_seen`, for whom it is no matter when the disk does not take it."""
        with contextlib.suppress(OSError):
            self.save_seen(seen)

    def since(self) -> datetime:
        """When a cockpit was opened here for the first time: what ended before is news to nobody."""
        path = self._directory / "since"
        try:
            return datetime.fromisoformat(path.read_text(encoding="utf-8").strip())
        except (OSError, ValueError):
            now = utc_now()
            with contextlib.suppress(OSError):
                self._write(path, now.isoformat())
            return now

    def seen(self) -> dict[UUID, datetime]:
        """When each replica was last looked at."""
        try:
            stored = json.loads((self._directory / "seen.json").read_bytes())
            return {UUID(key): datetime.fromisoformat(text) for key, text in stored.items()}
        except (OSError, ValueError, AttributeError, TypeError):
            return {}
