"""One call to a source host, its answer read as JSON. Nothing of it is ever logged but the status."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import httpx

ANSWER_BYTES = 4 << 20


class HostError(Exception):
    """A host could not be told; the text says why, without an address."""


class HostRefusal(HostError):
    """It answered, with a status that is no success."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(f"it answered {status}")
        self.status = status
        self.body = body


@dataclass(frozen=True)
class HostCall:
    """A request of a host's REST API; `path` is relative to the API's base."""

    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str] | None = None


async def make(client: "httpx.AsyncClient", api_url: str, call: HostCall) -> dict[str, Any]:
    """Makes a call; `{}` for an answer that is no JSON object.

    Raises:
        HostError: it could not be made, or was not taken.
    """
    import httpx

    try:
        async with client.stream(
            call.method,
            api_url.rstrip("/") + call.path,
            headers=dict(call.headers),
            json=call.body,
            params=call.query,
        ) as answer:
            body = _object(await _read(answer))
            if not answer.is_success:
                raise HostRefusal(answer.status_code, body)
            return body
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as e:
        raise HostError(type(e).__name__) from e


async def _read(answer: "httpx.Response") -> bytes:
    read = bytearray()
    async for chunk in answer.aiter_bytes():
        read += chunk
        if len(read) > ANSWER_BYTES:
            raise HostError("its answer is too long")
    return bytes(read)


def _object(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def id_in(answer: Mapping[str, Any]) -> str | None:
    """The number that a host gave its record; None when it gave none."""
    found = answer.get("id")
    return str(found) if isinstance(found, int) and not isinstance(found, bool) else None
