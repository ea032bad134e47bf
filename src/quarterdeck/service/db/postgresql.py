"""PostgreSQL: one transaction writes at a time, across all services.

Readers see one moment each.

Every write transaction takes an advisory lock first and releases it at its end. So all writes of a
database are serialized, as in SQLite: an event's index is never seen before an earlier one, and no
service decides on data that another is changing. Several services may share a database; each has a
home of its own. The writer's connection holds a second lock, named by the home, while it is open: a
home and a copy of it are never both served. When the connection is lost that lock goes with it, and
the next write takes it again or fails. A service that acquires the lock of another home therefore knows
that its owner cannot write now (`service.fleet.leases`). It belongs to a session: between service and
server there must not be a pooler in transaction mode.
"""

from hashlib import sha256
from typing import Any, Protocol

from sqlalchemy import Column, Connection, Engine, String, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.pool import NullPool

WAIT_SECONDS = 5
"""How long a write waits for writes of other services, a service for its home's lock, and a read
for a table that another program holds."""

STUCK_SECONDS = 30
"""An idle transaction is ended after this time: a service that was stopped in the middle of one
must not block the writes of others. It repeats the write when it continues."""

WRITER_LOCK = 0x5144_0001
"""The writers' lock, within its database. An earlier version holds it while it runs."""

_LINK = {
    "application_name": "quarterdeck",
    "connect_timeout": "5",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""Connection parameters unless the URL says otherwise: a lost server is noticed in a minute."""

_SERVER_SIDE = (
    # The server, too, notices a lost service, and releases its lock.
    "SET tcp_keepalives_idle = 30",
    "SET tcp_keepalives_interval = 10",
    "SET tcp_keepalives_count = 3",
    # An answered write is durable, whatever the server's default is.
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'",
    f"SET lock_timeout = '{WAIT_SECONDS}s'",
    f"SET idle_in_transaction_session_timeout = '{STUCK_SECONDS}s'",
)


class _Raw(Protocol):
    """The part of the driver's connection that is used here."""

    autocommit: bool

    def execute(self, query: str) -> Any: ...


def writing(url: URL, home_id: str | None = None) -> Engine:
    """Return an engine whose transactions are the only writers from their first moment.

    With a home, for one connection at a time: the next one waits for the lock of the earlier one.
    """
    # Each statement sees all earlier commits; nobody else commits in the meantime.
    engine = _engine(url, "READ COMMITTED", home_id)
    event.listen(engine, "begin", _wait_for_turn)
    return engine


def reading(url: URL) -> Engine:
    """Return an engine whose transactions each see one snapshot and cannot write."""
    return _engine(url, "REPEATABLE READ").execution_options(postgresql_readonly=True)


def take_home_lock(connection: Connection, home_id: str) -> bool:
    """Take the lock of a home until the end of the transaction, unless its service holds it."""
    statement = f"SELECT pg_try_advisory_xact_lock({_lock_of(home_id)})"
    return bool(connection.exec_driver_sql(statement).scalar_one())


def _engine(url: URL, isolation: Any, home_id: str | None = None) -> Engine:
    missing = {name: value for name, value in _LINK.items() if name not in url.query}
    # Each thread keeps its own connection; there is nothing to pool. Errors are logged, without values.
    engine = create_engine(
        url.update_query_dict(missing),
        poolclass=NullPool,
        isolation_level=isolation,
        hide_parameters=True,
    )

    def on_connect(raw: _Raw, _: Any) -> None:
        raw.autocommit = True
        for statement in _SERVER_SIDE:
            raw.execute(statement)
        if home_id is not None:
            raw.execute(f"SELECT pg_advisory_lock({_lock_of(home_id)})")
        raw.autocommit = False

    event.listen(engine, "connect", on_connect)
    return engine


def _wait_for_turn(connection: Connection) -> None:
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITER_LOCK})")


def _lock_of(home_id: str) -> int:
    digest = sha256(f"quarterdeck home {home_id}".encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


@compiles(String, "postgresql")
def _as_text(type_: String, compiler: Any, **how: Any) -> str:
    """Return a column's type: texts of any length, in the order of their characters as in SQLite.

    The contract's length limits are checked before anything is stored; a collation of the server
    would order lists differently in each database.
    """
    if isinstance(how.get("type_expression"), Column):
        return 'VARCHAR COLLATE "C"'
    return compiler.visit_string(type_, **how)
