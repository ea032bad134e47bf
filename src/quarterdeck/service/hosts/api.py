"""Reads and calls of a source host's REST API, as few as possible.

A resource is cached for some seconds, then requested conditionally: "not modified" does not count
against a host's rate limit. While a host limits requests, it gets none.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import quote
from weakref import WeakValueDictionary

from cachetools import LRUCache
from pydantic import BaseModel, TypeAdapter, ValidationError

from quarterdeck.service.checks.hosts import headers_of_host_a, headers_of_host_b
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.hosts.events import as_line
from quarterdeck.service.hosts.settings import HOST_A, HOSTS
from quarterdeck.service.http_client import AnswerError, open_client, read_answer
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.json_size import has_too_many_values

if TYPE_CHECKING:
    import httpx

FRESH_SECONDS = 10.0
"""How long a resource is used without a request to the host."""
CALL_SECONDS = 15.0
"""A call that is not answered within this has failed."""
DOWN_SECONDS = 3.0
"""How long nothing is read from a host that could not be reached: many may be waiting to."""
AT_ONCE = 8
"""Maximum number of concurrent calls to one host."""
RESOURCES = 2_000
"""Maximum number of cached resources of one host."""
ANSWER_BYTES = 4 << 20
MOST_PAGES = 5
PAGE = 100
"""Requested entries of a page; hosts may return fewer."""
LIMIT_SECONDS = 60.0
"""Pause after a host has limited requests without saying for how long."""
LONGEST_LIMIT = 3600.0
"""Seconds after which a host is called again, even if it named a later moment."""

GRAPHQL = "/graphql"
"""Path of host A's other API: below the REST API, or next to its version 3."""

_NEXT_PAGE = re.compile(r'rel="?next\b')
_LIMITED = re.compile("rate limit", re.IGNORECASE)

T = TypeVar("T")


class HostRefusedError(ApiError):
    """A host has refused a call. `host_status` is its HTTP status, `details` its message."""

    def __init__(self, code: ErrorCode, message: str, host_status: int, reason: str | None) -> None:
        super().__init__(code, message, reason)
        self.host_status = host_status


@dataclass(frozen=True)
class _Resource:
    """A resource of the host; `requested_at` is of the monotonic clock."""

    etag: str | None
    value: Any
    has_next: bool
    requested_at: float


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    content: object
    """Its parsed JSON; None for none."""


class HostApi:
    """The API of one host, with the configured token."""

    def __init__(self, context: ServiceContext, host: str) -> None:
        self.host = host
        self.kept: LRUCache[str, _Resource] = LRUCache(RESOURCES)
        self.expired: LRUCache[str, float] = LRUCache(RESOURCES)
        """When the resources of a repository last became stale, by its lower-case name."""
        self.locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._context = context
        self._client: httpx.AsyncClient | None = None
        self._room = asyncio.Semaphore(AT_ONCE)
        self._limited_until: datetime | None = None
        self._down: tuple[float, str] = (0.0, "")
        """Until when nothing is read, by the monotonic clock, and why."""

    async def close(self) -> None:
        """Close the connections to the host."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def expire(self, repository: str) -> None:
        """Mark the resources of a repository as stale."""
        self.expired[repository.lower()] = monotonic()

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        etag: str | None = None,
    ) -> _Answer:
        """Make one call; 304 answers a conditional one.

        Raises:
            HostRefusedError: the host refused.
            ApiError: CONFLICT when it cannot be reached, RATE_LIMITED while it limits requests.
        """
        async with self._room:
            self._check_limit()
            until, reason = self._down
            if method == "GET" and monotonic() < until:
                raise self._failed(reason)
            try:
                async with asyncio.timeout(CALL_SECONDS):
                    answer = await self._exchange(method, path, query, body, etag)
            except TimeoutError as error:
                raise self._unreachable("it did not answer in time") from error
        if answer.status == HTTPStatus.NOT_MODIFIED and etag is not None:
            return answer
        self._check(answer)
        return answer

    async def _exchange(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Mapping[str, Any] | None,
        etag: str | None,
    ) -> _Answer:
        import httpx  # most services make no calls

        settings = self._context.hosts.of(self.host)
        headers = (
            headers_of_host_a(settings) if self.host == HOST_A else headers_of_host_b(settings)
        )
        if etag is not None:
            headers["If-None-Match"] = etag
        if self._client is None:
            self._client = open_client(CALL_SECONDS)
        base = settings.api_url or ""
        url = (base.removesuffix("/v3") if path == GRAPHQL else base) + path
        request = self._client.stream(method, url, headers=headers, json=body, params=query)
        try:
            async with request as response:
                content = await read_answer(response, ANSWER_BYTES)
                # Parsing them would block the event loop for seconds.
                if has_too_many_values(content):
                    raise self._failed("its answer has too many values")
                return _Answer(response.status_code, response.headers, _json(content))
        except AnswerError as error:
            raise self._failed(str(error)) from error
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise self._unreachable(type(error).__name__) from error

    def understood(self, shape: type[T], content: object) -> T:
        """Return the parsed content of an answer.

        Raises:
            ApiError: CONFLICT when it has another shape.
        """
        try:
            return _adapter(shape).validate_python(content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            where = as_line(".".join(map(str, first["loc"])))
            raise self._failed(f"its answer is not understood: {where}: {first['msg']}") from error

    def _unreachable(self, reason: str) -> ApiError:
        self._down = (monotonic() + DOWN_SECONDS, reason)
        return self._failed(reason)

    def _failed(self, reason: str) -> ApiError:
        return ApiError(
            ErrorCode.CONFLICT, f"{self.host} cannot be used now. Try again later.", reason
        )

    def _check(self, answer: _Answer) -> None:
        """Raise the error of an answer that is not a success."""
        status = answer.status
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return
        reason = _reason(answer.content)
        self._note_limit(answer, reason)
        self._check_limit()
        check = f"Check {token_setting(self.host)}."
        match status:
            case HTTPStatus.UNAUTHORIZED:
                code = ErrorCode.CONFLICT
                message = f"{self.host} refused the token. {check}"
            case HTTPStatus.FORBIDDEN:
                code = ErrorCode.CONFLICT
                message = f"{self.host} does not allow this with the token. {check}"
            case HTTPStatus.NOT_FOUND:
                code = ErrorCode.NOT_FOUND
                message = f"{self.host} does not have this, or hides it from the token. {check}"
            case HTTPStatus.UNPROCESSABLE_ENTITY:
                code, message = ErrorCode.INVALID_REQUEST, f"{self.host} did not accept this."
            case _ if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise self._failed(f"it answered {status}")
            case _:
                code, message = ErrorCode.CONFLICT, f"{self.host} refused this."
        raise HostRefusedError(code, message, status, reason or f"it answered {status}")

    def _note_limit(self, answer: _Answer, reason: str | None) -> None:
        """Note until when the host accepts no requests, if it says so."""
        headers = answer.headers
        wait = retry_after_seconds(headers.get("retry-after"), self._context.clock())
        spent = "0" in (headers.get("x-ratelimit-remaining"), headers.get("ratelimit-remaining"))
        limited = answer.status == HTTPStatus.TOO_MANY_REQUESTS or (
            answer.status == HTTPStatus.FORBIDDEN
            and (spent or wait is not None or bool(_LIMITED.search(reason or "")))
        )
        if not limited:
            return
        now = self._context.clock()
        if wait is None and spent:
            reset = headers.get("x-ratelimit-reset") or headers.get("ratelimit-reset") or ""
            wait = int(reset[:12]) - now.timestamp() if reset.isdecimal() else None
        wait = LIMIT_SECONDS if wait is None else wait
        self._limited_until = now + timedelta(seconds=min(max(wait, 1.0), LONGEST_LIMIT))

    def _check_limit(self) -> None:
        if self._limited_until is None:
            return
        left = (self._limited_until - self._context.clock()).total_seconds()
        if left <= 0:
            self._limited_until = None
            return
        again = self._limited_until.astimezone(UTC).isoformat(" ", "seconds")[:19]
        raise ApiError(
            ErrorCode.RATE_LIMITED,
            f"{self.host} limits requests. Try again after {again} UTC.",
            retry_after=int(left) + 1,
        )


class RepositoryApi:
    """The part of a host's API below one repository. `repository` is its full name there."""

    def __init__(self, api: HostApi, repository: str) -> None:
        self.host = api.host
        self.repository = repository
        self._api = api
        self._path = _repository_path(api.host, repository)

    def expire(self) -> None:
        """Mark every resource as stale: the next read is a conditional request."""
        self._api.expire(self.repository)

    async def get(self, path: str, shape: type[T], *, now: bool = False) -> T:
        """Read a resource; `now` requests it even if it was read just before.

        Raises:
            ApiError: as `HostApi.call`.
        """
        return (await self._read(path, shape, {}, now)).value

    async def pages(
        self,
        path: str,
        shape: type[T],
        query: Mapping[str, str] | None = None,
        *,
        now: bool = False,
    ) -> list[T]:
        """Read the pages of a list, a bounded number of them; `now` as in `get`.

        Raises:
            ApiError: as `HostApi.call`.
        """
        values: list[T] = []
        for number in range(1, MOST_PAGES + 1):
            parameters = {**(query or {}), "per_page": str(PAGE), "page": str(number)}
            page = await self._read(path, shape, parameters, now)
            values.append(page.value)
            if not page.has_next:
                break
        return values

    async def query(self, text: str, variables: Mapping[str, Any], shape: type[T]) -> T:
        """Make a GraphQL query of host A's, which cannot be conditional.

        Raises:
            ApiError: as `HostApi.call`.
        """
        body = {"query": text, "variables": variables}
        answer = await self._api.call("POST", GRAPHQL, body=body)
        return self._api.understood(shape, answer.content)

    async def cached(
        self, name: str, read: Callable[[], Awaitable[T]], seconds: float, *, now: bool = False
    ) -> T:
        """Return the result of `read`, made at most so long ago; `now` as in `get`."""
        api, key, started = self._api, f"{self._path} {name}", monotonic()
        async with api.locks.setdefault(key, asyncio.Lock()):
            resource = api.kept.get(key)
            if resource is None or not self._is_fresh(resource, started if now else 0.0, seconds):
                requested_at = monotonic()
                resource = _Resource(None, await read(), False, requested_at)
                api.kept[key] = resource
            return resource.value

    def _is_fresh(self, resource: _Resource, since: float, seconds: float) -> bool:
        expired = self._api.expired.get(self.repository.lower()) or 0.0
        return max(expired, since, monotonic() - seconds) < resource.requested_at

    async def send(self, method: str, path: str, body: Mapping[str, Any], shape: type[T]) -> T:
        """Make a change, once. Unless the host refused, an error leaves open whether it was made.

        Raises:
            ApiError: as `HostApi.call`.
        """
        try:
            answer = await self._api.call(method, self._path + path, body=body)
        finally:
            self.expire()
        return self._api.understood(shape, answer.content)

    async def _read(
        self, path: str, shape: type[T], query: Mapping[str, str], now: bool
    ) -> _Resource:
        api, full = self._api, self._path + path
        key = f"{full} {sorted(query.items())}"
        started = monotonic()
        # Concurrent reads of the same resource cost one request.
        async with api.locks.setdefault(key, asyncio.Lock()):
            cached = api.kept.get(key)
            since = started if now else 0.0
            if cached is not None and self._is_fresh(cached, since, FRESH_SECONDS):
                return cached
            requested_at = monotonic()
            answer = await api.call("GET", full, query=query, etag=cached and cached.etag)
            if answer.status == HTTPStatus.NOT_MODIFIED and cached is not None:
                api.kept[key] = resource = replace(cached, requested_at=requested_at)
                return resource
            api.kept[key] = resource = _Resource(
                etag=_sendable(answer.headers.get("etag")),
                value=api.understood(shape, answer.content),
                has_next=bool(_NEXT_PAGE.search(answer.headers.get("link", ""))),
                requested_at=requested_at,
            )
            return resource


class HostApis:
    """The APIs of both hosts; closed with the application."""

    def __init__(self, context: ServiceContext) -> None:
        self._apis = {host: HostApi(context, host) for host in HOSTS}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, host: str, repository: str) -> RepositoryApi:
        """Return the API of a repository, by its full name at the host."""
        return RepositoryApi(self._apis[host], repository)

    def expire(self, host: str, repository: str) -> None:
        """Mark the resources of a repository as stale."""
        self._apis[host].expire(repository)

    def lock(self, name: str) -> asyncio.Lock:
        """Return the lock for changes of one subject, so that nothing is created twice."""
        return self._locks.setdefault(name, asyncio.Lock())

    async def close(self) -> None:
        """Close the connections to the hosts."""
        for api in self._apis.values():
            await api.close()


def token_setting(host: str) -> str:
    """Return the name of the setting of a host's token."""
    variable = f"QD_{host.replace('-', '_').upper()}_TOKEN"
    return f"`token` in [{host}] of the configuration file, or {variable}"


def _repository_path(host: str, repository: str) -> str:
    quoted = quote(repository, safe="/" if host == HOST_A else "")
    return f"/repos/{quoted}" if host == HOST_A else f"/projects/{quoted}"


@cache
def _adapter(shape: Any) -> TypeAdapter[Any]:
    return TypeAdapter(shape)


def _sendable(etag: str | None) -> str | None:
    """Return an ETag that can be sent back; a header has ASCII only."""
    return etag if etag is not None and etag.isascii() else None


def _json(content: bytes) -> object:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


class _Failure(BaseModel):
    """The error of both hosts: a text, or texts by field."""

    message: object = None
    error: object = None
    errors: object = None


def _reason(content: object) -> str | None:
    """Return the error message of a host, in one line."""
    if not isinstance(content, dict):
        return None
    failure = _Failure.model_validate(content)
    texts = [
        text
        for part in (failure.message, failure.error, failure.errors)
        for text in _texts(part, levels=3)
    ]
    return as_line("; ".join(dict.fromkeys(texts)))


def _texts(part: object, levels: int) -> list[str]:
    match part:
        case str():
            return [part]
        case list() if levels:
            entries = cast("list[object]", part)[:20]
            return [text for entry in entries for text in _texts(entry, levels - 1)]
        case {"message": str(text)}:
            return [text]
        case {"field": str(field), "code": str(code)}:
            return [f"{field} is {code}"]
        case dict() if levels:
            entries = list(cast("dict[str, object]", part).items())[:20]
            return [
                f"{field}: {text}" for field, value in entries for text in _texts(value, levels - 1)
            ]
        case _:
            return []


def retry_after_seconds(retry_after: str | None, now: datetime) -> float | None:
    """Return the seconds of `Retry-After`, in either of its forms."""
    if retry_after is None:
        return None
    if retry_after.isdecimal():
        return float(retry_after[:12])
    try:
        return (parsedate_to_datetime(retry_after) - now).total_seconds()
    except (ArithmeticError, ValueError, TypeError):
        return None
