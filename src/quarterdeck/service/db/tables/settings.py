"""Small values of the installation."""

from sqlalchemy import Column, Integer, String, Table, Text

from quarterdeck.service.db.tables.base import metadata

settings = Table(
    "settings",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("value", Text, nullable=False),
    Column("revision", Integer, nullable=False, default=0),
)
