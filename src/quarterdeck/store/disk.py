"""State of the cockpit on disk: drafts, unacknowledged messages, seen marks, the list's arrangement.

Each is one small JSON file, written under another name, synced and renamed into place, so that a
crash leaves the old one or the new one. A file that cannot be read is set aside.
"""

import contextlib
import errno
import json
import os
from datetime import datetime
from pathlib import Path
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from quarterdeck.local.files import make_private_directory, read_file, write_file
from quarterdeck.store.list_view import ListView
from quarterdeck.store.terminals import TerminalSplit
from quarterdeck.wire.base import Timestamp, utc_now
from quarterdeck.wire.chats import Image

_NEVER_READABLE = {errno.EACCES, errno.EFBIG, errno.EINVAL, errno.EISDIR, errno.ELOOP}
"""Errors of a file itself; after others, such as too many open files, it can be read later."""

_LATER = ConfigDict(defer_build=True)
_PROMPTS = TypeAdapter(list[str], config=_LATER)
_MOMENT = TypeAdapter[datetime](Timestamp, config=_LATER)
_SEEN = TypeAdapter(dict[UUID, Timestamp], config=_LATER)
_SPLITS = TypeAdapter(dict[UUID, TerminalSplit], config=_LATER)


class OutgoingMessage(BaseModel, defer_build=True):
    """A message being sent. `unsent`: the service has not received it; `unsure`: it may have."""

    key: str
    replica_id: UUID
    chat_id: UUID | None
    text: str
    plan_mode: bool = False
    goal_mode: bool = False
    model: str | None = None
    images: list[Image] = []
    uploads: list[str] = []
    """Ids of canvas uploads that wait for the replica."""
    behind: list[UUID] | None = None
    """The messages before it in the queue when it was taken back and edited."""
    created_at: Timestamp
    state: Literal["sending", "unsent", "unsure"] = "sending"
    problem: str | None = None


class ClientDisk:
    """The directory of one endpoint's drafts, outbox and seen marks.

    Raises:
        OSError: from every writing method, when it cannot be written.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._outbox = directory / "outbox"
        self._drafts = directory / "drafts"
        self._comments = directory / "comments"
        self._prompts = directory / "prompts"
        self._since = directory / "since"
        self.unreadable: list[Path] = []

    def _write(self, path: Path, text: str) -> None:
        make_private_directory(path.parent)
        write_file(path, text)

    def _text(self, path: Path) -> str:
        """Return the text of a file, or an empty one; a file that cannot be read is set aside."""
        try:
            return read_file(path).decode(errors="replace")
        except FileNotFoundError:
            return ""
        except OSError as e:
            if e.errno in _NEVER_READABLE:
                _set_aside(path)
            return ""

    def save_draft(self, chat_id: UUID, text: str) -> None:
        """Keep the text of a chat's composer; empty text removes it."""
        path = self._drafts / f"{chat_id}.txt"
        if text:
            self._write(path, text)
        else:
            path.unlink(missing_ok=True)

    def draft(self, chat_id: UUID) -> str:
        """Return the kept draft of a chat, or an empty text."""
        return self._text(self._drafts / f"{chat_id}.txt")

    def save_comments(self, replica_id: UUID, text: str) -> None:
        """Keep the comments on a replica's changes; empty text removes them."""
        path = self._comments / f"{replica_id}.json"
        if text:
            self._write(path, text)
        else:
            path.unlink(missing_ok=True)

    def comments(self, replica_id: UUID) -> str:
        """Return the kept comments of a replica, or an empty text."""
        return self._text(self._comments / f"{replica_id}.json")

    def set_comments_aside(self, replica_id: UUID) -> None:
        """Move comments that cannot be read out of the way of new ones."""
        _set_aside(self._comments / f"{replica_id}.json")

    def save_prompts(self, replica_id: UUID, prompts: list[str]) -> None:
        """Keep the person's prompts to a replica, oldest first."""
        self._write(self._prompts / f"{replica_id}.json", json.dumps(prompts))

    def prompts(self, replica_id: UUID) -> list[str]:
        """Return the person's prompts to a replica, oldest first."""
        path = self._prompts / f"{replica_id}.json"
        try:
            return _PROMPTS.validate_json(read_file(path))
        except FileNotFoundError:
            return []
        except (OSError, ValidationError) as e:
            if not isinstance(e, OSError) or e.errno in _NEVER_READABLE:
                _set_aside(path)
            return []

    def save_outgoing(self, message: OutgoingMessage) -> None:
        """Keep a message until `forget_outgoing`."""
        self._write(self._outbox / f"{message.key}.json", message.model_dump_json())

    def forget_outgoing(self, key: str) -> None:
        """Remove a message that the service has, or that the person dropped."""
        (self._outbox / f"{key}.json").unlink(missing_ok=True)

    def set_aside(self, key: str) -> Path:
        """Set aside a message that can never be delivered; return its file."""
        path = self._outbox / f"{key}.json"
        aside = path.with_suffix(".undelivered")
        path.rename(aside)
        return aside

    def outgoing(self) -> list[OutgoingMessage]:
        """Return the messages of an earlier cockpit, oldest first. `sending` ones become unsure.

        Those that cannot be read are set aside, and are in `unreadable` from then on.
        """
        messages: list[OutgoingMessage] = []
        for path in self._outbox.glob("*.json"):
            try:
                message = OutgoingMessage.model_validate_json(read_file(path))
            except (OSError, ValidationError):
                with contextlib.suppress(OSError):
                    self.unreadable.append(path.rename(path.with_suffix(".unreadable")))
                continue
            if message.state == "sending":
                message.state = "unsure"
            messages.append(message)
        return sorted(messages, key=lambda message: message.created_at)

    def save_seen(self, seen: dict[UUID, datetime]) -> None:
        """Keep when each replica was last looked at."""
        text = json.dumps({str(key): moment.isoformat() for key, moment in seen.items()})
        self._write(self._directory / "seen.json", text)

    def keep_seen(self, seen: dict[UUID, datetime]) -> None:
        """Save what was seen, ignoring errors of the disk."""
        with contextlib.suppress(OSError):
            self.save_seen(seen)

    def save_list_view(self, view: ListView) -> None:
        """Keep how the list of replicas is arranged."""
        self._write(self._directory / "list.json", view.model_dump_json())

    def list_view(self) -> ListView:
        """Return how the list of replicas is arranged."""
        try:
            return ListView.model_validate_json(read_file(self._directory / "list.json"))
        except (OSError, ValidationError):
            return ListView()

    def save_splits(self, splits: dict[UUID, TerminalSplit]) -> None:
        """Keep which terminals are shown together, by replica."""
        self._write(self._directory / "splits.json", _SPLITS.dump_json(splits).decode())

    def splits(self) -> dict[UUID, TerminalSplit]:
        """Return which terminals are shown together."""
        try:
            return _SPLITS.validate_json(read_file(self._directory / "splits.json"))
        except (OSError, ValidationError):
            return {}

    def first_opened(self) -> datetime | None:
        """Return when a cockpit was opened here for the first time; None before that."""
        try:
            return _MOMENT.validate_strings(read_file(self._since).decode().strip())
        except (OSError, ValueError):
            return None

    def since(self) -> datetime:
        """Return when a cockpit was first opened here, or now: earlier results are not unseen."""
        known = self.first_opened()
        if known is not None:
            return known
        now = utc_now()
        with contextlib.suppress(OSError):
            self._write(self._since, now.isoformat())
        return now

    def seen(self) -> dict[UUID, datetime]:
        """Return when each replica was last looked at."""
        try:
            return _SEEN.validate_json(read_file(self._directory / "seen.json"))
        except (OSError, ValidationError):
            return {}


def _set_aside(path: Path) -> None:
    """Move what cannot be read out of the way of what is written next."""
    place, number = path.with_suffix(".unreadable"), 1
    while os.path.lexists(place):
        number += 1
        place = path.with_suffix(f".unreadable-{number}")
    with contextlib.suppress(OSError):
        path.rename(place)


def open_disk(directory: Path, endpoint: str) -> ClientDisk:
    """Return the directory of an endpoint, named after it."""
    name = "".join(c if c.isalnum() or c in "-._" else "_" for c in endpoint)
    return ClientDisk(directory / (name or "local"))
