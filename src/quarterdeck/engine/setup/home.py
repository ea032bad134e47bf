"""Writes below HOME of a sandbox without following a link out of it.

HOME may have been changed by earlier work, so no part of a path is trusted: every directory is
opened from its parent, links refused, and a file is written next to its place and moved.

Where each agent looks below HOME for skills and for instructions that always apply.

Skills are installed once, in `.agents/skills`, which codex, opencode and gemini read. Their own
directories get a link for versions that do not yet; those that read both list a skill once. claude
reads only its own directory. The built-in agent reads neither skills nor instructions.
"""

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath


class SetupError(Exception):
    """The text is for a person and names what failed: it becomes the replica's error."""


_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def parts_of(path: str) -> tuple[str, ...]:
    """Return the parts of `~/a/b`, or of `a/b`.

    Raises:
        SetupError: it is absolute, leaves HOME, or names nothing.
    """
    parts = PurePosixPath(path.removeprefix("~/")).parts
    if not parts or path.startswith("/") or ".." in parts or "\0" in path or parts == ("~",):
        raise SetupError(f"{path!r} is not a path below the home directory.")
    return parts


class SandboxHome:
    """The home directory in a workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, data: bytes, mode: int = 0o600) -> None:
        """Put a file in place, whole, making its directories.

        Raises:
            SetupError: a link or something else is in its place, or the disk refused.
        """
        with self._parent(path, make=True) as (directory, name):
            new = f".{secrets.token_hex(8)}.new"
            try:
                descriptor = os.open(new, _NEW, mode, dir_fd=directory)
                try:
                    with os.fdopen(descriptor, "wb") as file:
                        os.fchmod(file.fileno(), mode)
                        file.write(data)
                        file.flush()
                        os.fsync(file.fileno())
                    os.replace(new, name, src_dir_fd=directory, dst_dir_fd=directory)
                except OSError:
                    os.unlink(new, dir_fd=directory)
                    raise
            except OSError as error:
                raise _failed(path, error) from error

    def link(self, path: str, target: str) -> None:
        """Put a symbolic link in place, unless something that is not a link is there.

        Raises:
            SetupError: as `write`.
        """
        with self._parent(path, make=True) as (directory, name):
            new = f".{secrets.token_hex(8)}.new"
            try:
                if _is_there(name, directory) and not _is_link(name, directory):
                    return
                os.symlink(target, new, dir_fd=directory)
                os.replace(new, name, src_dir_fd=directory, dst_dir_fd=directory)
            except OSError as error:
                raise _failed(path, error) from error

    def remove(self, path: str) -> None:
        """Remove a file or link, if it is there, and the directories that it leaves empty."""
        parts = parts_of(path)
        try:
            with self._parent(path, make=False) as (directory, name):
                os.unlink(name, dir_fd=directory)
        except (OSError, SetupError):
            return  # it was removed already, or replaced
        if len(parts) > 1:
            self._remove_empty("/".join(parts[:-1]))

    def has(self, path: str) -> bool:
        """Return whether anything has this path, links not followed."""
        try:
            with self._parent(path, make=False) as (directory, name):
                return _is_there(name, directory)
        except (OSError, SetupError):
            return False

    def _remove_empty(self, path: str) -> None:
        parts = parts_of(path)
        try:
            with self._parent(path, make=False) as (directory, name):
                os.rmdir(name, dir_fd=directory)
        except (OSError, SetupError):
            return  # something else is in it
        if len(parts) > 1:
            self._remove_empty("/".join(parts[:-1]))

    @contextmanager
    def _parent(self, path: str, make: bool) -> Generator[tuple[int, str]]:
        *above, name = parts_of(path)
        try:
            current = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise _failed(path, error) from error
        try:
            for part in above:
                current = _enter(path, current, part, make)
            yield current, name
        finally:
            os.close(current)


def _enter(path: str, current: int, part: str, make: bool) -> int:
    try:
        if make and not _is_there(part, current):
            os.mkdir(part, 0o700, dir_fd=current)
        entered = os.open(part, _DIRECTORY, dir_fd=current)
    except OSError as error:
        raise _failed(path, error) from error
    os.close(current)
    return entered


def _is_there(name: str, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _is_link(name: str, directory: int) -> bool:
    try:
        os.readlink(name, dir_fd=directory)
    except OSError:
        return False
    return True


def _failed(path: str, error: OSError) -> SetupError:
    shown = path if path.startswith("~/") else f"~/{path}"
    return SetupError(f"{shown} could not be written: {error.strerror or error}.")


SKILLS = ".agents/skills"

OWN_SKILLS = (
    ".claude/skills",
    ".codex/skills",
    ".copilot/skills",
    ".gemini/skills",
    ".config/opencode/skills",
)

INSTRUCTIONS = (
    ".claude/CLAUDE.md",
    ".codex/AGENTS.md",
    ".copilot/copilot-instructions.md",
    ".gemini/GEMINI.md",
    ".config/opencode/AGENTS.md",
)
