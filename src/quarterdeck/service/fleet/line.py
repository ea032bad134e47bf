"""The link to an engine on which requests make their calls."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from quarterdeck.engine.link import EngineError, EngineLink, EngineRefused
from quarterdeck.service.errors import ApiError
from quarterdeck.wire.errors import ErrorCode

T = TypeVar("T")


class Line:
    """Holds the link while there is one; those who call meanwhile wait a little."""

    def __init__(self, wait: float) -> None:
        self._wait = wait
        self._link: EngineLink | None = None
        self._there = asyncio.Event()

    def put(self, link: EngineLink) -> None:
        """The engine can be called."""
        self._link = link
        self._there.set()

    def clear(self) -> None:
        """The engine cannot be called."""
        self._link = None
        self._there.clear()

    @property
    def link(self) -> EngineLink | None:
        """The link, if it is open now."""
        return None if self._link is None or self._link.closed else self._link

    async def call(self, ask: Callable[[EngineLink], Awaitable[T]], limit: float) -> T:
        """Makes a call on the link.

        Raises:
            ApiError: the engine's own refusal with its code; ENGINE_STARTING when it does not
                run yet, ENGINE_UNREACHABLE when it was lost or did not answer within `limit`.
        """
        link = await self._open_link()
        try:
            async with asyncio.timeout(limit):
                return await ask(link)
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
    """The engine could not be asked; whether a call was carried out is not known."""
    return ApiError(ErrorCode.ENGINE_UNREACHABLE, message)


def api_error(error: EngineError) -> ApiError:
    """An engine's error under the contract's code; one from a newer engine is an internal error."""
    if not isinstance(error, EngineRefused):
        return unreachable(error.message)
    try:
        code = ErrorCode(error.code)
    except ValueError:
        code = ErrorCode.INTERNAL_ERROR
    if code is ErrorCode.UNAUTHORIZED:  # between the engine and the service, not the caller's
        code = ErrorCode.ENGINE_UNREACHABLE
    return ApiError(code, error.message, error.details)
