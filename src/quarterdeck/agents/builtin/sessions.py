"""Sessions of the built-in agent on disk: one JSON file each, so a restart loses nothing said."""

import uuid
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from quarterdeck.agents.builtin.files import write_private

HISTORY_LIMIT = 300
"""Updates kept for a reload, counted from the end."""


class Session(BaseModel):
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

    def create(self, working_directory: str) -> Session:
        """Makes and stores a new session."""
        session = Session(id=str(uuid.uuid4()), directory=working_directory)
        self.save(session)
        return session

    def load(self, session_id: str) -> Session:
        """Reads a session back.

        Raises:
            UnknownSessionError: there is none.
        """
        try:
            text = self._path(session_id).read_text("utf-8")
            return Session.model_validate_json(text)
        except (OSError, ValidationError, ValueError) as error:
            raise UnknownSessionError(session_id) from error

    def save(self, session: Session) -> None:
        """Stores a session in one step.

        Raises:
            OSError: the disk is full, or the directory cannot be written.
        """
        del session.history[:-HISTORY_LIMIT]
        write_private(self._path(session.id), session.model_dump_json())

    def script(self, session: Session) -> Path:
        """Where the session's running block is put."""
        return self._directory / f"{session.id}.block"

    def _path(self, session_id: str) -> Path:
        # Through UUID: an id from outside must not become a path.
        return self._directory / f"{uuid.UUID(session_id)}.json"
