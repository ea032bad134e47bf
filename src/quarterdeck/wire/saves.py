"""The save of a replica's work in the service's home, from which a lost volume is restored.

It is one bare repository for each replica whose files are not on the service's machine:

| ref | |
|---|---|
| `refs/saves/REPOSITORY/*` | the refs of a repository, below its id: branches, tags of its own, checkpoints |
| `SAVED_REF` of them | the newest files, uncommitted and new ones too |
| `FILES_REF` | a tree with files of `HOME` and of the engine |
| `HEADER_REF` | a blob: the `WorkSave` |
"""

from collections.abc import Mapping
from dataclasses import dataclass

from quarterdeck.wire.base import CamelRecord, Timestamp
from quarterdeck.wire.git_state import EngineRepository

SAVES = "refs/saves"
FILES_REF = f"{SAVES}/files"
HEADER_REF = f"{SAVES}/header"
SAVED = "saved"
SAVED_REF = f"refs/qd/{SAVED}"
"""In a repository: the commit with the files of the last save."""


STASHES = "refs/qd/stash"
"""In a repository that is being restored: its stashes, the newest first."""
PLAIN = "* -text -eol -ident -filter -working-tree-encoding\n"
"""Attributes under which git keeps the files of `FILES_REF` as they are."""


def saved_refs(repository_id: object) -> str:
    """Return where the refs of a repository are in a save."""
    return f"{SAVES}/{repository_id}"


@dataclass(frozen=True)
class SaveFork:
    """What of a replica's save goes to a fork of it."""

    branch: str
    """The one that is checked out in each repository."""
    places: Mapping[str, str]
    """Directories of `FILES_REF` that go along, with their new names, all ending in `/`. The canvas
    does not go along."""
    texts: Mapping[str, str]
    """More files, by their path."""


class SaveCall(CamelRecord):
    """Input of `engine.saving`."""

    repositories: list[EngineRepository]
    state_dir: str
    known: list[str] = []
    """Commits and trees that the save, or what it borrows from, has already."""


class WorkSave(CamelRecord):
    """First line that `engine.saving` prints, before a pack with what is not known yet."""

    refs: dict[str, str]
    """The refs of the save, and the objects that they name."""
    heads: dict[str, str]
    """What is checked out, by the id of the repository: the full name of a branch, or a commit."""
    left_out: list[str] = []
    """Files that were too large."""
    failed: list[str] = []
    """Ids of the repositories that could not be read: their last save stays."""
    lost: list[str] = []
    """What of a damaged save could not be read any more, for a person."""
    forked: bool = False
    """It is the copy of another replica's save, for a fork."""
    at: Timestamp | None = None
    """When the service had it."""
