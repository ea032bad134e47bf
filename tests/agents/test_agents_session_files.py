"""An agent's session, taken out of one workspace and put into another."""

import io
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

from quarterdeck.agents.session_files import put, take

PATTERNS = ("data/sessions/*/log-{session}.jsonl", "data/agent.db")


def made(tmp_path: Path) -> tuple[Path, Path]:
    """A home and a chat's directory with a session called `[1]`, and another one beside it."""
    home, chat = tmp_path / "home", tmp_path / "agents" / "chat"
    for session in ("[1]", "1"):
        file = home / "data" / "sessions" / "today" / f"log-{session}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"said in {session}")
    chat.mkdir(parents=True)
    (chat / "session").write_text("[1]")
    (chat / "own.json").write_text("{}")
    (chat / "link").symlink_to("/etc/passwd")
    return home, chat


def test_a_session_is_put_where_it_was_with_what_a_database_has_not_written_yet(
    tmp_path: Path,
) -> None:
    home, chat = made(tmp_path)
    with closing(sqlite3.connect(home / "data" / "agent.db")) as open_database:
        open_database.execute("PRAGMA journal_mode=WAL")
        open_database.execute("CREATE TABLE said (text)")
        open_database.execute("INSERT INTO said VALUES ('hello')")
        open_database.commit()
        data = take(home, chat, PATTERNS)
    other = tmp_path / "other"
    for _ in range(2):
        put(data, other / "home", other / "chat")
    files = {str(p.relative_to(other)) for p in other.rglob("*") if p.is_file()}
    assert files == {
        "home/data/sessions/today/log-[1].jsonl",
        "home/data/agent.db",
        "chat/session",
        "chat/own.json",
    }
    with closing(sqlite3.connect(other / "home" / "data" / "agent.db")) as database:
        assert database.execute("SELECT text FROM said").fetchall() == [("hello",)]


def test_there_is_nothing_to_take_without_all_files_of_a_session(tmp_path: Path) -> None:
    home, chat = made(tmp_path)
    assert take(home, chat, PATTERNS) == b""  # no database
    assert take(home, chat, PATTERNS[:1]) != b""
    (chat / "session").unlink()
    assert take(home, chat, ()) == b""


def test_no_file_is_put_elsewhere(tmp_path: Path) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name in ("home/../out", "/out", "out", "chat/../../out", "chat/in"):
            tar.addfile(tarfile.TarInfo(name), io.BytesIO())
        link = tarfile.TarInfo("home/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        tar.addfile(link)
    put(data.getvalue(), tmp_path / "home", tmp_path / "chat")
    assert [p.name for p in tmp_path.rglob("*") if not p.is_dir()] == ["in"]
