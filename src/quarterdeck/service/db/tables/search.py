"""The table of searched texts, with the full-text index of each kind of database."""

from typing import Any

from sqlalchemy import BigInteger, Column, Connection, Index, Integer, String, Table, Text, event

from quarterdeck.service.db.tables.core import metadata, moment, workspace

SEARCH_DDL = {
    "sqlite": (
        "CREATE VIRTUAL TABLE search_words USING fts5(text, content='search_texts', "
        "content_rowid='id', columnsize=0, prefix='2 3 4', "
        "tokenize='unicode61 remove_diacritics 0')",
        "CREATE TRIGGER search_texts_added AFTER INSERT ON search_texts BEGIN "
        "INSERT INTO search_words (rowid, text) VALUES (new.id, new.text); END",
        "CREATE TRIGGER search_texts_deleted AFTER DELETE ON search_texts BEGIN "
        "INSERT INTO search_words (search_words, rowid, text) VALUES ('delete', old.id, old.text); "
        "END",
    ),
    "postgresql": (
        "ALTER TABLE search_texts ADD COLUMN words tsvector",
        "CREATE INDEX ix_search_texts_words ON search_texts USING gin (words)",
    ),
}
"""What SQLAlchemy's tables do not describe, by dialect; for new databases and for migrations.

SQLite's index holds no text of its own, and triggers keep it current, also when rows are deleted
with their workspace."""

search_texts = Table(
    "search_texts",
    metadata,
    # SQLite counts rows only where the type is exactly INTEGER.
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    workspace(),
    Column("chat_id", String(36), nullable=False),
    Column("role", String(8), nullable=False),
    Column("history_index", BigInteger, nullable=False),
    Column("text", Text, nullable=False),
    moment("ts"),
    Index("ix_search_texts_workspace", "workspace_id"),
)
"""Messages and tool calls of finished turns, in the order in which they were indexed. `role` is
`user`, `agent` or `tool`; `history_index` is the place of the first event in the chat's history."""


def _add_index(_: Table, connection: Connection, **__: Any) -> None:
    for statement in SEARCH_DDL[connection.dialect.name]:
        connection.exec_driver_sql(statement)


def _drop_index(_: Table, connection: Connection, **__: Any) -> None:
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("DROP TABLE IF EXISTS search_words")


event.listen(search_texts, "after_create", _add_index)
event.listen(search_texts, "before_drop", _drop_index)
