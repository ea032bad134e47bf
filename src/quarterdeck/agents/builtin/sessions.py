"""Sessions of the built-in agent on disk: one JSON file each, so they survive a restart."""

import uuid
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from quarterdeck.local.files import write_file

HISTORY_LIMIT = 300
"""Updates kept for a reload, counted from the end."""


class StoredSession(BaseModel):
    """A session as it is stored. `history` holds the protocol's update objects."""

    id: str
    directory: str
    mode: str = "default"
    history: list[dict[str, Any]] = []


class UnknownSessionError(Exception):
    """No session has this id, or its file cannot be read."""


class SessionStore:
    """The session files of one state directory. Blocking: call it from a thread."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def create(self, working_directory: str) -> StoredSession:
        """Create and store a new session."""
        session = StoredSession(id=str(uuid.uuid4()), directory=working_directory)
        self.save(session)
        return session

    def load(self, session_id: str) -> StoredSession:
        """Read a session back.

        Raises:
            UnknownSessionError: there is none.
        """
        try:
            text = self._path(session_id).read_text("utf-8")
            return StoredSession.model_validate_json(text)
        except (OSError, ValidationError, ValueError) as error:
            raise UnknownSessionError(session_id) from error

    def save(self, session: StoredSession) -> None:
        """Store a session in one step.

        Raises:
            OSError: the disk is full, or the directory cannot be written.
        """
        del session.history[:-HISTORY_LIMIT]
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file(self._path(session.id), session.model_dump_json())

    def script(self, session: StoredSession) -> Path:
        """Return the file for the session's running block."""
        return self._directory / f"{session.id}.block"

    def _path(self, session_id: str) -> Path:
        # Through UUID: an id from outside must not become a path.
        return self._directory / f"{uuid.UUID(session_id)}.json"
