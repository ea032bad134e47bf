"""The services that share the database."""

from sqlalchemy import Column, String, Table, Text

from quarterdeck.service.db.tables.base import metadata, moment

services = Table(
    "services",
    metadata,
    Column("home_id", String(36), primary_key=True),
    Column("url", Text, nullable=False),
    moment("seen_at"),
)
"""`url` is where the service of a home is reached by the others, `seen_at` when it last said so."""
