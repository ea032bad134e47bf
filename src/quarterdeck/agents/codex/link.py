"""One running `codex app-server`: requests both ways and its notifications, in order.

A line is a JSON-RPC message without the member that says so. What codex asks gets its answer in a
task of its own, so a person may think while codex goes on telling.
"""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, Protocol

from quarterdeck.agents.objects import as_object
from quarterdeck.agents.session.activity import Activity
from quarterdeck.agents.session.lines import LineTooLongError, Message
from quarterdeck.agents.session.link import Link, LinkLostError, RefusedError
from quarterdeck.agents.session.process import AgentProcess

UNKNOWN_METHOD = -32601
OVERLOADED = -32001
_OVERLOADS = 5
_FIRST_PAUSE = 0.1
"""Seconds before an overloaded server is asked again; twice as many each time."""

_COMMAND = "CODEX_TOOL_CALL_ID"
"""In the environment of every command that codex runs for the model."""

Heed = Callable[[Message], None]
"""Takes the result of a request before the next line is read."""

Reply = Callable[[], Awaitable[Message]]
"""Waits for the answer to something that codex asked."""


class Ears(Protocol):
    """Who hears what codex says of its own accord."""

    async def hear(self, method: str, params: Message) -> None:
        """Takes a notification. The next line is read when this returns."""
        ...

    async def asked(self, method: str, params: Message) -> Reply | None:
        """Takes a request; None when nobody here can answer such a one."""
        ...

    def lost(self) -> None:
        """Nothing more will come."""
        ...


class CodexLink(Link):
    """Talks to one process. `close` ends it."""

    def __init__(self, name: str, process: AgentProcess, activity: Activity, ears: Ears) -> None:
        super().__init__(name, process, activity)
        self._ears = ears
        self._numbers = count(1)
        self._waiting: dict[int, tuple[asyncio.Future[Message], Heed | None]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._reading = asyncio.create_task(self._read(), name="codex lines")

    async def request(self, method: str, params: Message, heed: Heed | None = None) -> Message:
        """Asks and waits for the answer, which `heed` is given first.

        Raises:
            LinkLostError: codex is gone.
            RefusedError: codex answered with an error.
        """
        pause = _FIRST_PAUSE
        for _ in range(_OVERLOADS):
            try:
                return await self._request(method, params, heed)
            except RefusedError as error:
                if error.code != OVERLOADED:
                    raise
            await asyncio.sleep(pause)
            pause *= 2
        return await self._request(method, params, heed)

    async def notify(self, method: str) -> None:
        """Says something that is not answered.

        Raises:
            LinkLostError: codex is gone.
        """
        await self._send({"method": method})

    async def end_commands(self) -> None:
        """Kills the commands that codex runs for the model, those included that left their group."""
        await self._process.end_some(_COMMAND)

    async def close(self, grace: float) -> None:
        """Ends codex and everything it started. Safe to call twice."""
        self._closed = True
        await self._process.end(grace)
        for task in (self._reading, *self._answering):
            task.cancel()
        await asyncio.gather(self._reading, *self._answering, return_exceptions=True)
        self._lose()

    async def _request(self, method: str, params: Message, heed: Heed | None) -> Message:
        number = next(self._numbers)
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer, heed
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
            pass  # `obituary` tells
        finally:
            self._lose()

    def _lose(self) -> None:
        if self._lost:
            return
        self._lost = True
        for answer, _ in self._waiting.values():
            if not answer.done():
                answer.set_exception(LinkLostError())
        self._ears.lost()

    async def _sorted(self, message: Message) -> None:
        method, params = message.get("method"), as_object(message.get("params"))
        if method is None:
            self._answered(message)
        elif "id" not in message:
            await self._ears.hear(method, params)
        else:
            reply = await self._ears.asked(method, params)
            task = asyncio.create_task(self._reply(message["id"], method, reply))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    def _answered(self, message: Message) -> None:
        waiting = self._waiting.get(message["id"]) if isinstance(message["id"], int) else None
        if waiting is None or waiting[0].done():
            return
        answer, heed = waiting
        if heed is not None and "error" not in message:
            heed(as_object(message.get("result")))
        answer.set_result(message)

    async def _reply(self, id: Any, method: str, reply: Reply | None) -> None:
        if reply is None:
            unknown = {"code": UNKNOWN_METHOD, "message": f"{method} is not answered here"}
            answer: Message = {"error": unknown}
        else:
            answer = {"result": await reply()}
        try:
            await self._send({"id": id, **answer})
        except LinkLostError:
            return  # whoever runs the turn finds out


def _refused(method: str, error: Message) -> RefusedError:
    return RefusedError(str(error.get("message") or f"{method} was refused"), error.get("code"))
