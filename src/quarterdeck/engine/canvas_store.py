"""Writing into the canvas directory, whole and once.

An upload is written beside under its id, then linked to its name, then noted, then the copy beside
is removed. Whatever is killed in between, the same upload sent again ends under one name.
"""

import json
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path, PurePosixPath

from quarterdeck.wire.canvas import CANVAS_NAME_LIMIT

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class CanvasStore:
    """Blocking; call it in a thread, one call at a time.

    Args:
        root: the canvas.
        aside: a directory on the same file system, for what is not finished.
        notes: the file that tells which uploads were written, and under which names.
    """

    def __init__(self, root: Path, aside: Path, notes: Path) -> None:
        self._root = root
        self._aside = aside
        self._notes = notes
        self._written: dict[str, str] | None = None

    def write(self, upload_id: str, name: PurePosixPath, data: bytes) -> str:
        """Writes an upload under its name, or the next that is free; returns that name.

        Raises:
            OSError: it cannot be written.
        """
        written, copy = self._known(), self._aside / upload_id
        if upload_id in written:
            copy.unlink(missing_ok=True)  # somebody was killed right after the note
            return written[upload_id]
        for directory in (self._root, self._aside):
            directory.mkdir(parents=True, mode=0o700, exist_ok=True)
        given = self._linked(copy) or self._place(copy, name, data)
        self._note(upload_id, given)
        written[upload_id] = given
        copy.unlink(missing_ok=True)
        return given

    def _place(self, copy: Path, name: PurePosixPath, data: bytes) -> str:
        copy.unlink(missing_ok=True)
        with os.fdopen(os.open(copy, _NEW, 0o644), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        for candidate in _names(self._possible(name)):
            try:
                os.link(copy, self._root / candidate, follow_symlinks=False)
            except FileExistsError:
                continue
            return str(candidate)
        raise AssertionError("the names never end")

    def _possible(self, name: PurePosixPath) -> PurePosixPath:
        """The name with its directories made, or its last part where a file is in their place."""
        try:
            (self._root / name).parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            return PurePosixPath(name.name)
        return name

    def _linked(self, copy: Path) -> str | None:
        """The name that a copy was given before somebody was killed."""
        try:
            mine = copy.lstat()
        except FileNotFoundError:
            return None
        if mine.st_nlink < 2:
            return None
        for parent, _, names in os.walk(self._root):
            for name in names:
                path = Path(parent, name)
                if path.lstat().st_ino == mine.st_ino:
                    return str(path.relative_to(self._root))
        return None

    def _known(self) -> dict[str, str]:
        if self._written is None:
            self._written = dict(_read(self._notes))
        return self._written

    def _note(self, upload_id: str, name: str) -> None:
        # Begun anew: the line before may have been cut short by a crash.
        line = b"\n" + json.dumps([upload_id, name]).encode() + b"\n"
        descriptor = os.open(
            self._notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            os.write(descriptor, line)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _names(name: PurePosixPath) -> Iterator[PurePosixPath]:
    yield name
    for number in count(2):
        ending = f"-{number}{name.suffix}"
        room = CANVAS_NAME_LIMIT - len(ending.encode())
        stem = name.stem.encode()[:room].decode(errors="ignore")
        yield name.with_name(stem + ending)


def _read(notes: Path) -> Iterator[tuple[str, str]]:
    try:
        lines = notes.read_bytes().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            upload_id, name = json.loads(line)
        except ValueError:
            continue  # cut short by a crash: the copy beside tells the name
        yield upload_id, name
