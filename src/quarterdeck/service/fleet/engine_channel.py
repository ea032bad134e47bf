"""The connection to an engine and its journal."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from quarterdeck.engine.link import EngineError, EngineLink, EngineRefusedError
from quarterdeck.service.errors import ApiError, StorageError
from quarterdeck.wire.errors import ErrorCode

T = TypeVar("T")


class EngineChannel:
    """Holds the link while there is one; callers without a link wait a little."""

    def __init__(self, wait: float) -> None:
        self._wait = wait
        self._link: EngineLink | None = None
        self._there = asyncio.Event()

    def put(self, link: EngineLink) -> None:
        """Note that the engine can be called."""
        self._link = link
        self._there.set()

    def clear(self) -> None:
        """Note that the engine cannot be called."""
        self._link = None
        self._there.clear()

    @property
    def link(self) -> EngineLink | None:
        """The link, if it is open now."""
        return None if self._link is None or self._link.closed else self._link

    async def call(self, request: Callable[[EngineLink], Awaitable[T]], limit: float) -> T:
        """Make a call on the link.

        Raises:
            ApiError: the engine's own refusal with its code; ENGINE_STARTING when it does not
                run yet, ENGINE_UNREACHABLE when it was lost or did not answer within `limit`.
        """
        link = await self._open_link()
        try:
            async with asyncio.timeout(limit):
                return await request(link)
        except EngineError as e:
            raise api_error(e) from e
        except TimeoutError as e:
            raise unreachable("The replica's engine does not answer.") from e

    async def _open_link(self) -> EngineLink:
        try:
            async with asyncio.timeout(self._wait):
                while (link := self.link) is None:
                    self._there.clear()
                    await self._there.wait()
                return link
        except TimeoutError as e:
            raise ApiError(
                ErrorCode.ENGINE_STARTING, "The replica's engine is starting. Try again shortly."
            ) from e


def unreachable(message: str) -> ApiError:
    """Return the error for an unreachable engine; whether a call was carried out is not known."""
    return ApiError(ErrorCode.ENGINE_UNREACHABLE, message)


def api_error(error: EngineError) -> ApiError:
    """Return an engine's error under the contract's code; one from a newer engine is an internal error."""
    if not isinstance(error, EngineRefusedError):
        return unreachable(error.message)
    try:
        code = ErrorCode(error.code)
    except ValueError:
        code = ErrorCode.INTERNAL_ERROR
    if code is ErrorCode.UNAUTHORIZED:  # between the engine and the service, not the caller's
        code = ErrorCode.ENGINE_UNREACHABLE
    return ApiError(code, error.message, error.details)


class JournalMark:
    """Follows the relay, so that callers can wait for a change in the engine to be stored."""

    def __init__(self) -> None:
        self._index = 0
        self._moved = asyncio.Event()
        self.failure: StorageError | None = None
        """Why the next entries could not be stored so far; they are tried again."""

    def fail(self, error: StorageError) -> None:
        """Keep the error of a write, for those who wait."""
        self.failure = error

    def put(self, index: int) -> None:
        """Note that everything up to this index is stored."""
        self._index = index
        self.failure = None
        self._moved.set()
        self._moved = asyncio.Event()

    async def reached(self, index: int) -> None:
        """Return once everything up to an index is stored."""
        while self._index < index:
            await self._moved.wait()
