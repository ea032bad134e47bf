"""Run by Alembic: migrates on the connection it was given, inside its transaction."""

from typing import cast

from alembic import context
from sqlalchemy import Connection

from quarterdeck.service.db.tables import metadata

connection = cast("Connection", context.config.attributes["connection"])
context.configure(connection=connection, target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
