"""A PostgreSQL server of a test session's own, and a fresh database in it for each test.

It runs as an unprivileged user over a unix socket in a temporary directory, and ends with the
process that started it.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tests.support.tools import missing

OWNER = "deck"
"""The role that all tests use."""
UNPRIVILEGED = "nobody"
"""Who runs the server when root runs the tests; the server refuses root."""
DEBIAN = "/usr/lib/postgresql/*/bin"
START_SECONDS = 60.0
_QUICK = ("fsync=off", "full_page_writes=off", "max_connections=100", "shared_buffers=16MB")


def find_programs() -> Path:
    """The directory of `initdb` and `postgres`; Debian keeps them out of the path. Without them the
    test is skipped.
    """
    if program := shutil.which("initdb"):
        return Path(program).parent
    places = Path("/").glob(DEBIAN.lstrip("/"))
    found = [one for one in places if (one / "initdb").exists()]
    return max(found) if found else missing("postgresql")


@dataclass
class Server:
    """A cluster in a directory. `start` and `stop` keep what is in it."""

    programs: Path
    base: Path
    process: "subprocess.Popen[bytes] | None" = None
    _made: int = 0
    _chooses: bool = False
    """How a database is copied can be chosen from version 15 on."""

    @property
    def log(self) -> Path:
        return self.base / "log"

    def initialize(self) -> None:
        self._run("initdb", "-D", str(self.base / "data"), "-U", OWNER, "--no-sync", "-E", "UTF8")

    def start(self) -> None:
        options = [word for setting in _QUICK for word in ("-c", setting)]
        words = ["postgres", "-D", str(self.base / "data"), "-k", str(self.base), "-h", ""]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command([*words, *options]), stdout=log, stderr=log, cwd=self.base
            )
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                with psycopg.connect(self.url("postgres")) as connection:
                    self._chooses = connection.info.server_version >= 150_000
                return
            except psycopg.OperationalError:
                assert self.process.poll() is None, self.log.read_text()
                assert time.monotonic() < end, self.log.read_text()
                time.sleep(0.02)

    def stop(self) -> None:
        """Cuts every connection."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(START_SECONDS)
            self.process = None

    def url(self, name: str) -> str:
        return f"postgresql://{OWNER}@/{name}?host={self.base}"

    def execute(self, statement: str, *values: Any) -> list[Any]:
        """Runs a statement outside of any test's database."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            done = connection.execute(statement.encode(), values or None)
            return [] if done.description is None else done.fetchall()

    def create(self, template: str = "template0") -> str:
        """A new database, empty or like another one; its name."""
        self._made += 1
        name = f"test{self._made}"
        # Copying the files takes a third of what writing them through the log does.
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}{}").format(
            sql.Identifier(name),
            sql.Identifier(template),
            sql.SQL(" STRATEGY FILE_COPY" if self._chooses else ""),
        )
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement)
        return name

    def drop(self, name: str) -> None:
        statement = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement)

    def backends(self, name: str) -> list[int]:
        """The server's processes that serve a database."""
        rows = self.execute("SELECT pid FROM pg_stat_activity WHERE datname = %s", name)
        return [pid for (pid,) in rows]

    def cut(self, name: str) -> int:
        """Ends every connection of a database, as a crash would; returns how many there were."""
        found = self.backends(name)
        for pid in found:
            self.execute("SELECT pg_terminate_backend(%s, 5000)", pid)
        return len(found)

    def _run(self, *words: str) -> None:
        done = subprocess.run(
            self._command(words), cwd=self.base, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def _command(self, words: Sequence[str]) -> list[str]:
        program = [str(self.programs / words[0]), *words[1:]]
        who = ["--reuid", UNPRIVILEGED, "--regid", _group(), "--clear-groups"]
        # Ends with its starter, even when that is killed.
        return ["setpriv", *(who if os.geteuid() == 0 else []), "--pdeathsig", "INT", *program]


def _group() -> str:
    return str(pwd.getpwnam(UNPRIVILEGED).pw_gid)


@contextmanager
def running(programs: Path) -> Iterator[Server]:
    """A server for the time of the block; nothing is left of it."""
    # Not pytest's own directory: the server's user must be able to pass.
    base = Path(tempfile.mkdtemp(prefix="qd-pg-"))
    if os.geteuid() == 0:
        shutil.chown(base, UNPRIVILEGED)
    server = Server(programs, base)
    try:
        server.initialize()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(base, ignore_errors=True)
