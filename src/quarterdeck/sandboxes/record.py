"""What the driver remembers of a workspace on disk, where nothing inside can reach it."""

import json
import os
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError

from quarterdeck.sandboxes.processes import ProcessRef

Mode = Literal["bubblewrap", "none"]


class SandboxRecord(BaseModel):
    """The processes of a started sandbox.

    `init` is the one whose death ends all others: the first process of the pid namespace, or the
    launcher when there is none. `engine` is known once its socket has answered. `mark` is the
    sandbox's: in a copy of an installation lies a record of what runs in the first one.
    """

    boot: str
    mark: str
    mode: Mode
    init: ProcessRef
    engine: ProcessRef | None = None


class CloneEntry(BaseModel):
    """A repository that was put into a workspace.

    `directory` is its name there; `objects` the path at which it looks for the mirror's objects,
    null when it has all of its own.
    """

    directory: str
    base_commit: str | None
    objects: str | None


class CloneBook(BaseModel):
    """Every repository of a workspace by its id."""

    clones: dict[str, CloneEntry] = {}


class Status(BaseModel):
    """What the launcher or bubblewrap has said about its child."""

    child_pid: int | None = None
    exit_code: int | None = None


def load_record(path: Path) -> SandboxRecord | None:
    """The stored record; None without a readable one."""
    try:
        return SandboxRecord.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def load_book(path: Path) -> CloneBook:
    """The stored book; an empty one when there is none."""
    try:
        return CloneBook.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return CloneBook()


def store(path: Path, model: BaseModel) -> None:
    """Writes a record at once and whole."""
    new = path.with_name(f"{path.name}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(model.model_dump_json())
    new.replace(path)


def read_status(path: Path) -> Status:
    """What was said so far; a line still being written is left out."""
    said: dict[str, int] = {}
    for line in path.read_text(errors="replace").split("\n")[:-1]:
        for name, value in json.loads(line or "{}").items():
            said[name.replace("-", "_")] = value
    return Status.model_validate(said)
