"""Removes from the files of a SQLite database what its rows have no longer."""

import logging
import sqlite3
from contextlib import closing

from quarterdeck.service.db.database import BUSY_SECONDS, SQLITE, parse_url

log = logging.getLogger(__name__)


def erase_removed(url: str) -> bool:
    """Rewrite a SQLite database and empty its log: both keep earlier values for a long time.

    Takes as much room as the database has, for a moment. Return whether it was done; there is
    nothing to do for a server. It is not done while another program reads the database.
    """
    parsed = parse_url(url)
    if parsed.get_backend_name() != SQLITE or not parsed.database:
        return True
    try:
        with closing(sqlite3.connect(parsed.database, timeout=BUSY_SECONDS)) as connection:
            connection.execute("VACUUM")
            (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as e:
        log.warning("Removed values cannot be erased from the database's files yet: %s", e)
        return False
    if busy:
        log.warning("Removed values cannot be erased from the database's log yet: it is in use")
    return not busy
