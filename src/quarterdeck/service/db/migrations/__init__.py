"""Migrations (Alembic). Imported only when a database of an older version is opened."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection


def configuration(connection: Connection) -> Config:
    """Return Alembic's configuration for an open connection."""
    config = Config()
    # Alembic reads the path through a template in which % is special.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Migrate within the connection's running transaction."""
    command.upgrade(configuration(connection), revision)
