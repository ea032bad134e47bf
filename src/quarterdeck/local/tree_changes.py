"""The files that differ between two trees, and what a work tree has at their paths."""

import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SUBMODULE = "160000"
"""Mode of a submodule, whose object is a commit of another repository."""


@dataclass(frozen=True)
class TreeChange:
    """A file that differs between two trees. An object is None where the file is missing."""

    path: str
    old: str | None
    new: str | None
    old_mode: str
    new_mode: str

    @property
    def replaces_submodule(self) -> bool:
        """Whether a file takes the place of a submodule."""
        return self.old_mode == SUBMODULE != self.new_mode and self.new is not None


def read_changes(output: bytes) -> list[TreeChange]:
    """Return the changes in the output of `git diff-tree -r -z --no-renames`."""
    fields = output.split(b"\0")
    changes: list[TreeChange] = []
    for header, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old, new, status = header.decode().split()
        changes.append(
            TreeChange(
                os.fsdecode(path),
                None if status == "A" else old,
                None if status == "D" else new,
                old_mode.removeprefix(":"),
                new_mode,
            )
        )
    return changes


def entry(mode: str, blob: str | None) -> str | None:
    """Return the index entry of a file; None without the file."""
    return None if blob is None else f"{mode} {blob}"


def read_link_or_file(path: Path) -> tuple[bool, bytes]:
    """Return whether a path is a link, and its target or content.

    Raises:
        OSError: it cannot be read.
    """
    link = path.is_symlink()
    return link, os.fsencode(path.readlink()) if link else path.read_bytes()


def remove_files(top: Path, paths: Iterable[str]) -> None:
    """Remove files below a directory where they are, and their directories that have nothing else.

    Raises:
        OSError: one cannot be removed.
    """
    for path in paths:
        with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
            (top / path).unlink()
        for parent in list(Path(path).parents)[:-1]:
            try:
                (top / parent).rmdir()
            except OSError:
                break  # it is not empty


def has_other_files(top: Path, directory: str, known: Collection[str]) -> bool:
    """Return whether a directory below another has files or links that are not among the known paths."""
    for at, directories, names in os.walk(top / directory):
        place = Path(at)
        links = (name for name in directories if (place / name).is_symlink())
        if any(str((place / name).relative_to(top)) not in known for name in (*names, *links)):
            return True
    return False


def is_in_the_way(top: Path, path: str, removed: Collection[str]) -> bool:
    """Return whether something is at the path of a new file, or of its directory, that is not removed."""
    if os.path.lexists(top / path):
        below = {name for name in removed if name.startswith(f"{path}/")}
        if not below or not (top / path).is_dir():
            return True
        return has_other_files(top, path, below)  # newer versions of git remove ignored files
    parents = [str(name) for name in Path(path).parents][:-1]
    return any(
        os.path.lexists(top / name)
        and ((top / name).is_symlink() or not (top / name).is_dir())
        and name not in removed
        for name in parents
    )
