"""The connection to codex's app-server: requests both ways and its notifications, in order.

A line is a JSON-RPC message without the `jsonrpc` member. Requests of codex are answered in
separate tasks, so codex can continue while a person decides.
"""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import TYPE_CHECKING, Any

from quarterdeck.agents.objects import as_object
from quarterdeck.agents.session.process import (
    AgentProcess,
    LineTooLongError,
    LinkLostError,
    Message,
    ProcessLink,
    RefusedError,
)
from quarterdeck.agents.session.recorder import Activity

if TYPE_CHECKING:
    from quarterdeck.agents.codex.listener import ThreadListener

UNKNOWN_METHOD = -32601
OVERLOADED = -32001
MOST_SENDING = 1_000
"""Replies being sent; at this number, codex is not read until it takes one."""
_OVERLOADS = 5
_FIRST_PAUSE = 0.1
"""Seconds before a request to an overloaded server is repeated; doubled each time."""

_COMMAND = "CODEX_TOOL_CALL_ID"
"""In the environment of every command that codex runs for the model."""

OnResult = Callable[[Message], None]
"""Receives the result of a request before the next line is read."""

Reply = Callable[[], Awaitable[Message]]
"""Waits for the answer to a request of codex."""


class CodexLink(ProcessLink):
    """Talks to one process. `close` ends it."""

    def __init__(
        self, name: str, process: AgentProcess, activity: Activity, listener: "ThreadListener"
    ) -> None:
        super().__init__(name, process, activity)
        self._listener = listener
        self._numbers = count(1)
        self._waiting: dict[int, tuple[asyncio.Future[Message], OnResult | None]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._sending = asyncio.Semaphore(MOST_SENDING)
        self._reading = asyncio.create_task(self._read(), name="codex lines")

    async def request(
        self, method: str, params: Message, on_result: OnResult | None = None
    ) -> Message:
        """Send a request and wait for the answer; `on_result` receives it first.

        Raises:
            LinkLostError: codex has ended.
            RefusedError: codex answered with an error.
        """
        pause = _FIRST_PAUSE
        for _ in range(_OVERLOADS):
            try:
                return await self._request(method, params, on_result)
            except RefusedError as error:
                if error.code != OVERLOADED:
                    raise
            await asyncio.sleep(pause)
            pause *= 2
        return await self._request(method, params, on_result)

    async def notify(self, method: str) -> None:
        """Send a notification, which is not answered.

        Raises:
            LinkLostError: codex has ended.
        """
        await self._send({"method": method})

    async def end_commands(self) -> None:
        """Kill the commands that codex runs for the model, even outside their process group."""
        await self._process.end_some(_COMMAND)

    async def close(self, grace: float) -> None:
        """End codex and everything it started. Safe to call twice."""
        self._closed = True
        await self._process.end(grace)
        for task in (self._reading, *self._answering):
            task.cancel()
        await asyncio.gather(self._reading, *self._answering, return_exceptions=True)
        self._lose()

    async def _request(self, method: str, params: Message, on_result: OnResult | None) -> Message:
        number = next(self._numbers)
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer, on_result
        try:
            await self._send({"id": number, "method": method, "params": params})
            message = await answer
        finally:
            self._waiting.pop(number, None)
        if "error" in message:
            raise _refused(method, as_object(message["error"]))
        return as_object(message.get("result"))

    async def _send(self, message: Message) -> None:
        if not self.usable:
            raise LinkLostError
        try:
            await self._transport.send(message)
        except ConnectionError as error:
            raise LinkLostError from error

    async def _read(self) -> None:
        try:
            await self._transport.receive()
        except LineTooLongError:
            pass  # `exit_reason` reports it
        finally:
            self._lose()

    def _lose(self) -> None:
        if self._lost:
            return
        self._lost = True
        for answer, _ in self._waiting.values():
            if not answer.done():
                answer.set_exception(LinkLostError())
        self._listener.lost()

    async def _dispatch(self, message: Message) -> None:
        method, params = message.get("method"), as_object(message.get("params"))
        if method is None:
            self._resolve(message)
        elif "id" not in message:
            await self._listener.hear(method, params)
        else:
            async with self._sending:  # waits while codex takes no replies
                reply = await self._listener.handle_request(method, params)
            task = asyncio.create_task(self._reply(message["id"], method, reply))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    def _resolve(self, message: Message) -> None:
        waiting = self._waiting.get(message["id"]) if isinstance(message["id"], int) else None
        if waiting is None or waiting[0].done():
            return
        answer, on_result = waiting
        if on_result is not None and "error" not in message:
            on_result(as_object(message.get("result")))
        answer.set_result(message)

    async def _reply(self, id: Any, method: str, reply: Reply | None) -> None:
        if reply is None:
            unknown = {"code": UNKNOWN_METHOD, "message": f"{method} is not answered here"}
            answer: Message = {"error": unknown}
        else:
            answer = {"result": await reply()}
        try:
            async with self._sending:
                await self._send({"id": id, **answer})
        except LinkLostError:
            return  # the running turn reports it


def _refused(method: str, error: Message) -> RefusedError:
    return RefusedError(str(error.get("message") or f"{method} was refused"), error.get("code"))


_REFUSED = "Check its key, or log in again."
_LIMITED = "Wait a while, or choose another model."
_BY_STATUS = {401: _REFUSED, 403: _REFUSED, 429: _LIMITED}
_BY_KIND = {
    "unauthorized": _REFUSED,
    "usageLimitExceeded": _LIMITED,
    "rateLimitExceeded": _LIMITED,
    "serverOverloaded": _LIMITED,
    "modelNotFound": "Choose another model.",
    "contextWindowExceeded": "Start another chat, or send a shorter message.",
    "sessionBudgetExceeded": "Start another chat.",
    "sandboxError": "Look at sandbox_mode in its configuration.",
    "internalServerError": "Try again later.",
}


def failure(name: str, record: dict[str, Any]) -> str:
    """Return a sentence on a failed turn, from codex's record of it."""
    error = as_object(record.get("error"))
    message = str(error.get("message") or "no reason given").rstrip(".")
    kind, status = _kind(error.get("codexErrorInfo"))
    advice = _BY_STATUS.get(status or 0) or _BY_KIND.get(kind, "")
    return f"{name} reported an error: {message}." + (f" {advice}" if advice else "")


def _kind(info: object) -> tuple[str, int | None]:
    if isinstance(info, str):
        return info, None
    kind, details = next(iter(as_object(info).items()), ("", None))
    status = as_object(details).get("httpStatusCode")
    return kind, status if isinstance(status, int) else None
