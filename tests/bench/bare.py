"""The peer of a request: one handler of the same framework with one SQLite read.

Run as `python -m tests.bench.bare SOCKET DATABASE`.
"""

import sqlite3
import sys

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel


class Record(BaseModel):
    """What the handler answers."""

    id: str
    name: str
    description: str | None


def bare_app(database: str) -> FastAPI:
    """The peer's application."""
    app = FastAPI()
    connection = sqlite3.connect(database, check_same_thread=False)
    connection.execute("CREATE TABLE IF NOT EXISTS records (id TEXT, name TEXT, description TEXT)")
    connection.execute("INSERT INTO records VALUES ('1', 'global', NULL)")
    connection.commit()

    @app.get("/")
    def read() -> Record:
        row = connection.execute("SELECT id, name, description FROM records").fetchone()
        return Record(id=row[0], name=row[1], description=row[2])

    return app


if __name__ == "__main__":
    uvicorn.run(bare_app(sys.argv[2]), uds=sys.argv[1], log_config=None, access_log=False)
