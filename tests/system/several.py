"""Several services over one database, each with a home of its own."""

import base64
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import psycopg

from tests.support.installation import Installation
from tests.support.postgresql import Server
from tests.support.waiting import WAIT_SECONDS
from tests.system.conftest import installed

DATABASE = "QUARTERDECK_DATABASE_URL"


@dataclass
class Pair:
    """Two services; `one` was there first."""

    one: Installation
    other: Installation
    url: str

    @property
    def both(self) -> tuple[Installation, Installation]:
        return self.one, self.other

    def revive(self) -> None:
        for service in self.both:
            service.revive()

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            done = connection.execute(statement.encode(), values or None)
            return [] if done.description is None else done.fetchall()

    def home_id(self, service: Installation) -> str:
        return service.home.id.read_text().strip()


@contextmanager
def paired(postgresql: Server, *words: str) -> Iterator[Pair]:
    """Both running; `words` are further arguments of the first one."""
    name = postgresql.create()
    url = postgresql.url(name)
    # The second is entered last: what it removes at its end, the first must still be there for.
    with installed() as one, installed() as other:
        for service in (one, other):
            service.variables[DATABASE] = url
        one.words = words
        one.start()
        other.home.service.mkdir(mode=0o700, parents=True)
        shutil.copy(one.home.master_key, other.home.master_key)
        other.start()
        pair = Pair(one, other, url)
        yield pair
        pair.revive()
    postgresql.drop(name)


class Screen:
    """Reads a terminal's stream in a thread."""

    def __init__(self, service: Installation, id: str, session: str) -> None:
        self.text = ""
        self.ended = False
        self._service = service
        self._path = f"/v1/replica/{id}/terminal/sessions/{session}/stream"
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._thread.join(WAIT_SECONDS)
        assert not self._thread.is_alive()

    def _read(self) -> None:
        headers = {"Authorization": f"Bearer {self._service.key}"}
        with (
            self._service.client(**headers) as client,
            client.stream("GET", self._path, timeout=httpx.Timeout(WAIT_SECONDS)) as response,
        ):
            for line in response.iter_lines():
                if line.startswith("data:"):
                    told = json.loads(line[5:])
                    if "data" in told:
                        self.text += base64.b64decode(told["data"]).decode(errors="replace")
        self.ended = True
