"""Reads texts of a damaged SQLite file that are not UTF-8."""

import logging
import sqlite3
from functools import partial

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

log = logging.getLogger(__name__)

_LENIENT = partial(str, encoding="utf-8", errors="replace")
"""Takes twice as long as the driver's own decoding, so only a damaged file is read with it."""


def is_undecodable(error: DBAPIError) -> bool:
    """Return whether SQLite's driver could not decode a text of a row."""
    return isinstance(error.orig, sqlite3.OperationalError) and "decode to UTF-8" in str(error.orig)


def read_leniently(connection: Connection) -> bool:
    """Replace bytes that are not UTF-8 in what a connection reads; False when it does so already.

    Otherwise one damaged text would hide every row that is read together with it.
    """
    raw = connection.connection.dbapi_connection
    if not isinstance(raw, sqlite3.Connection) or raw.text_factory is _LENIENT:
        return False
    log.warning("The file of the service's database has a text that is not UTF-8")
    raw.text_factory = _LENIENT
    return True
