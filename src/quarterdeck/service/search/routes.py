"""The route of the search in all chats."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from quarterdeck.service.context import Context
from quarterdeck.service.errors import ApiError
from quarterdeck.service.formats import decode_opaque, encode_opaque
from quarterdeck.service.identity.service import CallerDep
from quarterdeck.service.search.query import SearchQuery
from quarterdeck.service.search.rows import FoundText, find_texts
from quarterdeck.wire.base import DIGITS
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.search import DEFAULT_HITS, LONGEST_QUERY, MOST_HITS, SearchHit, SearchHits

search_router = APIRouter(tags=["chats"])


class _Cursor(BaseModel):
    before: int = Field(ge=0)


@search_router.get("/v1/search")
async def search(
    context: Context,
    caller: CallerDep,
    q: Annotated[str, Query(min_length=1, max_length=LONGEST_QUERY)],
    limit: Annotated[int, Query(ge=1, le=MOST_HITS), DIGITS] = DEFAULT_HITS,
    cursor: str | None = None,
) -> SearchHits:
    """Return messages and tool calls that have all words of `q`, newest first, from every replica.

    A phrase is put in quotation marks; the last word may be the beginning of a longer one. A turn is
    found once it has ended. Replicas that sleep or are archived are searched too.
    """
    query = SearchQuery.read(q)
    before = None if not cursor else _before(cursor)
    found = await context.database.read(
        lambda c: find_texts(c, caller.organization_id, query, limit + 1, before)
    )
    page = found[:limit]
    more = encode_opaque(_Cursor(before=page[-1].id)) if len(found) > limit else None
    return SearchHits(hits=[_hit(query, one) for one in page], next_cursor=more)


def _before(cursor: str) -> int:
    try:
        return decode_opaque(_Cursor, cursor).before
    except ValueError as e:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "The search has no such page.", f"cursor: {e}"
        ) from e


def _hit(query: SearchQuery, found: FoundText) -> SearchHit:
    values = {**vars(found)}
    del values["id"]
    excerpt, matches = query.excerpt(values.pop("text"))
    return SearchHit.model_validate({**values, "excerpt": excerpt, "matches": matches})
