"""The driver's records of a workspace on disk, out of reach of programs inside."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, TypeAdapter, ValidationError

from quarterdeck.local.files import read_file, write_file
from quarterdeck.local.processes import ProcessRef

Mode = Literal["bubblewrap", "none"]


class SandboxRecord(BaseModel):
    """The processes of a started sandbox.

    `init` is the one whose end ends all others: the first process of the pid namespace, or the
    launcher when there is none. `engine` is known once its socket has answered. `mark` is the
    sandbox's: a copy of an installation contains a record of processes of the original.
    """

    boot: str
    mark: str
    mode: Mode
    init: ProcessRef
    engine: ProcessRef | None = None


class CloneEntry(BaseModel):
    """A repository in a workspace.

    `directory` is its name there; `objects` the path of the mirror's objects, null when it borrows
    none.
    """

    directory: str
    base_commit: str | None
    objects: str | None


class CloneBook(BaseModel):
    """Every repository of a workspace by its id.

    `incarnations` are those whose volume has the newest work, for a driver with several volumes of a
    workspace: the last start that connected, and the attempts after it. `adopted` says that its files
    are from before another service had it, so that without its volume or a save it is not new.
    """

    clones: dict[str, CloneEntry] = {}
    incarnations: list[str] = []
    adopted: bool = False


class Status(BaseModel):
    """The reports of the launcher or bubblewrap about its child."""

    child_pid: int | None = None
    exit_code: int | None = None


_Report = TypeAdapter(dict[str, int])


def load_record(path: Path) -> SandboxRecord | None:
    """Return the stored record; None without a readable one."""
    try:
        return SandboxRecord.model_validate_json(read_file(path))
    except (OSError, ValidationError):
        return None


def load_book(path: Path) -> CloneBook:
    """Return the stored book; an empty one when there is none."""
    try:
        return CloneBook.model_validate_json(read_file(path))
    except (OSError, ValidationError):
        return CloneBook()


def store_record(path: Path, record: SandboxRecord) -> None:
    """Write a record; it is not valid after a restart of the machine."""
    write_file(path, record.model_dump_json(), durable=False)


def store_book(path: Path, book: CloneBook) -> None:
    """Write a book."""
    write_file(path, book.model_dump_json())


def read_status(path: Path) -> Status:
    """Return the reports so far; a line still being written is left out."""
    values: dict[str, int] = {}
    for line in read_file(path).split(b"\n")[:-1]:
        try:
            values |= _Report.validate_json(line or b"{}")
        except ValidationError:
            continue  # the disk has damaged it
    return Status.model_validate({name.replace("-", "_"): one for name, one in values.items()})
