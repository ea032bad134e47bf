"""Rows of searched texts."""

from dataclasses import dataclass

from sqlalchemy import (
    Connection,
    cast,
    column,
    insert,
    literal_column,
    select,
    table,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import TSQUERY, TSVECTOR

from quarterdeck.service.db.tables import chats, search_texts, workspaces
from quarterdeck.service.search.query import SearchQuery, vector_of


@dataclass(frozen=True)
class NewText:
    """A text to index; `history_index` is the place of its first event in the chat's history."""

    role: str
    history_index: int
    ts: str
    text: str


@dataclass(frozen=True)
class NewTexts:
    """The texts between two places in the history of a chat; `end` is exclusive."""

    start: int
    end: int
    texts: list[NewText]


@dataclass(frozen=True)
class FoundText:
    """A text that was found, with its chat and replica."""

    id: int
    workspace_id: str
    workspace_name: str
    chat_id: str
    chat_title: str | None
    role: str
    history_index: int
    ts: str
    text: str


def unsearched_chats(connection: Connection, home_id: str) -> list[tuple[str, str]]:
    """Return the chats whose history is not indexed to its end, each after its workspace of the home."""
    statement = (
        select(chats.c.workspace_id, chats.c.id)
        .join(workspaces, workspaces.c.id == chats.c.workspace_id)
        .where(
            workspaces.c.home_id == home_id,
            chats.c.searched_index < chats.c.next_history_index,
            chats.c.deletion.is_(None),
        )
        .order_by(chats.c.updated_at)
    )
    return [(workspace_id, chat_id) for workspace_id, chat_id in connection.execute(statement)]


def searched_index(connection: Connection, chat_id: str) -> int | None:
    """Return the place up to which a chat is indexed; None when it was deleted."""
    statement = select(chats.c.searched_index).where(
        chats.c.id == chat_id, chats.c.deletion.is_(None)
    )
    return connection.execute(statement).scalar()


def add_texts(connection: Connection, chat_id: str, new: NewTexts) -> bool:
    """Index texts of a chat; False when another service did so before."""
    statement = (
        update(chats)
        .where(chats.c.id == chat_id, chats.c.searched_index == new.start)
        .values(searched_index=new.end)
        .returning(chats.c.workspace_id)
    )
    workspace_id = connection.execute(statement).scalar()
    if workspace_id is None:
        return False
    of_chat = {"workspace_id": workspace_id, "chat_id": chat_id}
    rows = [{**vars(one), **of_chat} for one in new.texts]
    if rows and connection.dialect.name == "sqlite":
        connection.execute(insert(search_texts), rows)
    elif rows:
        with_words = [{**row, "words": vector_of(row["text"])} for row in rows]
        connection.execute(insert(_with_words), with_words)
    return True


_given = ("workspace_id", "chat_id", "role", "history_index", "ts", "text")
_with_words = table(
    "search_texts",
    *(column(name, search_texts.c[name].type) for name in _given),
    # Words as they are: the language of a chat is not known, code has none, and what a server
    # takes for a word depends on its locale.
    column("words", TSVECTOR),
)
_words = table("search_words", column("rowid"))
_found = (
    search_texts.c.id,
    search_texts.c.workspace_id,
    workspaces.c.name,
    search_texts.c.chat_id,
    chats.c.title,
    search_texts.c.role,
    search_texts.c.history_index,
    search_texts.c.ts,
    search_texts.c.text,
)


def find_texts(
    connection: Connection,
    organization_id: str,
    query: SearchQuery,
    limit: int,
    before: int | None = None,
) -> list[FoundText]:
    """Return up to `limit` texts that match, the last indexed first; `before` is an exclusive id."""
    statement = (
        select(*_found)
        .join(workspaces, workspaces.c.id == search_texts.c.workspace_id)
        .join(chats, chats.c.id == search_texts.c.chat_id)
        .where(
            workspaces.c.organization_id == organization_id,
            workspaces.c.warm_state.is_(None),
            chats.c.deletion.is_(None),
        )
        .limit(limit)
    )
    if connection.dialect.name == "sqlite":
        place = _words.c.rowid
        statement = statement.join(_words, place == search_texts.c.id).where(
            text("search_words MATCH :query").bindparams(query=query.for_sqlite())
        )
    else:
        place = search_texts.c.id
        wanted = cast(query.for_postgresql(), TSQUERY)
        statement = statement.where(literal_column("search_texts.words").op("@@")(wanted))
    if before is not None:
        statement = statement.where(place < before)
    return [FoundText(*row) for row in connection.execute(statement.order_by(place.desc()))]
