"""`python -m quarterdeck.agents.session_files`: copies an agent's session between workspaces.

    take HOME STATE CHAT AGENT    print a tar file; print nothing when there is no session
    put HOME STATE CHAT           read one, for a chat that has no session yet

Both run in a sandbox, so the files of a session can do no more than the agent itself can.
"""

import io
import os
import sqlite3
import sys
import tarfile
import tempfile
from contextlib import closing
from glob import escape
from pathlib import Path

from quarterdeck.agents.port import SESSION_FILE
from quarterdeck.agents.presets import load_presets

_HOME, _CHAT = "home/", "chat/"
_DATABASE = ".db"


def take(home: Path, directory: Path, patterns: tuple[str, ...]) -> bytes:
    """Return a tar file of a session, empty when there is none.

    Args:
        directory: the chat's directory, which is copied completely.
        patterns: the agent's session files below `home`; {session} is the id.
    """
    id_file = directory / SESSION_FILE
    if not id_file.is_file():
        return b""
    session = id_file.read_text("utf-8")
    resolved = [pattern.replace("{session}", escape(session)) for pattern in patterns]
    matches = [list(home.glob(pattern)) for pattern in resolved]
    if not all(matches):
        return b""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path in (path for paths in matches for path in paths if path.is_file()):
            _add(tar, path, _HOME + path.relative_to(home).as_posix())
        for path in directory.rglob("*"):
            if path.is_file() and not path.is_symlink():
                _add(tar, path, _CHAT + path.relative_to(directory).as_posix())
    return buffer.getvalue()


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    if path.suffix != _DATABASE:
        tar.add(path, name, recursive=False)
        return
    # An agent may have it open: its newest pages are then in a separate file.
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory, path.name)
        with (
            closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
        tar.add(copy, name, recursive=False)


def put(data: bytes, home: Path, directory: Path) -> None:
    """Write the files of a session; skip names that lead out of the two directories.

    It is safe to repeat.
    """
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            place = next((place for place in (_HOME, _CHAT) if member.name.startswith(place)), None)
            content = tar.extractfile(member) if member.isfile() else None
            if place is None or content is None or ".." in Path(member.name).parts:
                continue
            name = member.name.removeprefix(place).lstrip("/")
            path = (home if place == _HOME else directory) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read())


def main(arguments: list[str]) -> int:
    """Run the command line; return the exit status."""
    verb, home, state, chat, *rest = arguments
    directory = Path(state, "agents", chat)
    if verb == "put":
        put(sys.stdin.buffer.read(), Path(home), directory)
        return 0
    preset = load_presets().get(rest[0])
    if preset is not None and preset.sessions is not None:
        sys.stdout.buffer.write(take(Path(home), directory, preset.sessions))
    return 0


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))
