"""PostgreSQL: one service writes at a time, readers see one moment each.

The connection of the writer thread holds an advisory lock for as long as it lives. So all writes of
a database are made by one connection, one after the other, as in SQLite: an event's index is never
seen before an earlier one, and no second service takes over workspaces that have one. A second
service is refused until the first has ended; when its connection is lost, the lock goes with it, and
the next write takes the lock again or fails. The lock belongs to a session: between service and
server there may be no pooler that hands sessions round by transaction.
"""

from typing import Any, Protocol

from sqlalchemy import Column, Engine, String, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.pool import NullPool

WAIT_SECONDS = 5
"""How long a second service, or one that comes back, waits for the writers' lock."""

WRITER_LOCK = 0x5144_0001
"""The advisory lock's number, within its database."""

_LINK = {
    "application_name": "quarterdeck",
    "connect_timeout": "5",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""What the driver is told unless the URL says otherwise: a lost server is noticed in a minute."""

_SERVER_SIDE = (
    # The server, too, notices a lost service, and lets go of its lock.
    "SET tcp_keepalives_idle = 30",
    "SET tcp_keepalives_interval = 10",
    "SET tcp_keepalives_count = 3",
    # What was answered is durable, whatever the server's default is.
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'",
    f"SET lock_timeout = '{WAIT_SECONDS}s'",
    f"SELECT pg_advisory_lock({WRITER_LOCK})",
)


class _Raw(Protocol):
    """The part of the driver's connection that is used here."""

    autocommit: bool

    def execute(self, query: str) -> Any: ...


def writing(url: URL) -> Engine:
    """For one connection at a time: the next one waits for the lock of the one before."""
    # Each statement sees what was committed before it; nobody else commits anything.
    engine = _engine(url, "READ COMMITTED")
    event.listen(engine, "connect", _take_over)
    return engine


def reading(url: URL) -> Engine:
    """Each transaction sees one moment, and a statement that writes fails."""
    return _engine(url, "REPEATABLE READ").execution_options(postgresql_readonly=True)


def _engine(url: URL, isolation: Any) -> Engine:
    missing = {name: value for name, value in _LINK.items() if name not in url.query}
    # Each thread keeps its own connection; there is nothing to pool.
    return create_engine(
        url.update_query_dict(missing), poolclass=NullPool, isolation_level=isolation
    )


def _take_over(raw: _Raw, _: Any) -> None:
    raw.autocommit = True
    for statement in _SERVER_SIDE:
        raw.execute(statement)
    raw.autocommit = False


@compiles(String, "postgresql")
def _as_text(type_: String, compiler: Any, **how: Any) -> str:
    """Columns hold texts of any length in the order of their characters, as SQLite's do.

    Bounds are the contract's and are kept before anything is stored; an order by the server's
    language would give lists another order in each database.
    """
    if isinstance(how.get("type_expression"), Column):
        return 'VARCHAR COLLATE "C"'
    return compiler.visit_string(type_, **how)
