"""The files that differ between two trees."""

import os
from dataclasses import dataclass

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
        """Whether a file comes to the place of a submodule."""
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
