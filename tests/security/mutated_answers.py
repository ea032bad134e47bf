"""Answers of the service to every method of the client, with parts of them exchanged.

An answer is read as its model, or refused with an error of the client. What was read can be printed.
"""

import asyncio
import inspect
import json
import random
import re
import types
import typing
from collections.abc import AsyncIterable, Callable, Iterator
from enum import Enum
from functools import cache
from typing import Any, NamedTuple, cast
from uuid import UUID

import httpx
from pydantic import BaseModel

from quarterdeck.cli.output import json_text
from quarterdeck.client import Client, HttpConnection
from quarterdeck.client.client import _RESOURCES  # pyright: ignore[reportPrivateUsage]
from quarterdeck.client.error_mapping import Backoff
from quarterdeck.client.errors import ClientError
from quarterdeck.client.stream_events import ConnectionLost, Malformed
from quarterdeck.client.streams import ResumingStream
from quarterdeck.wire.base import Success
from tests.security.answering import KNOWN, Shapes, description
from tests.security.payloads import SEQUENCES, harm_in_text

QUICK = Backoff(first=0.001, longest=0.002)
WAITING = {"login", "keyboard"}
"""Methods that are no single call: they wait for a person."""
MOST_ITEMS = 100
"""Items that are read of a method which yields them."""

Mutation = Callable[[bytes], bytes]


class Method(NamedTuple):
    """A method of the client, by its resource."""

    resource: str
    name: str


@cache
def methods() -> list[Method]:
    """Return every method of every resource that makes one call."""
    client: Any = Client(HttpConnection("http://test", "qd_key"))
    found = list[Method]()
    for resource in _RESOURCES:
        names = [
            name for name, _ in inspect.getmembers(getattr(client, resource), inspect.ismethod)
        ]
        found += [Method(resource, one) for one in names if one[0] != "_" and one not in WAITING]
    return found


def arguments(method: Callable[..., Any]) -> dict[str, Any]:
    """Return something for each argument that a method requires."""
    hints = typing.get_type_hints(method)
    parameters = inspect.signature(method).parameters.values()
    return {one.name: _argument(hints[one.name]) for one in parameters if one.default is one.empty}


def _argument(kind: Any) -> Any:
    choices: tuple[Any, ...] = typing.get_args(kind)
    if typing.get_origin(kind) is typing.Literal:
        return choices[0]
    if typing.get_origin(kind) in (typing.Union, types.UnionType, typing.Annotated):
        return _argument(choices[0])
    if isinstance(kind, typing.TypeVar):  # the body of a resource that is like another
        return Success()
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind.model_construct()
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind))
    values: dict[Any, Any] = {UUID: UUID(KNOWN), int: 10, bool: True, bytes: b"x", str: "x"}
    return values[kind] if kind in values else [_argument(choices[0])]


@cache
def _shapes() -> Shapes:
    return Shapes(description(), [f"text {number}" for number in range(100)])


def read(method: Method, mutate: Mutation) -> bool:
    """Call a method, whose answer comes through `mutate`; return whether it was accepted."""
    return asyncio.run(_read(method, _shapes(), mutate))


async def _read(method: Method, shapes: Shapes, mutate: Mutation) -> bool:

    def answer(request: httpx.Request) -> httpx.Response:
        after = request.headers.get("Last-Event-ID")
        status, kind, body = shapes.answer(request.method, request.url.path, after)
        content = body.encode("utf-8", "surrogatepass")
        if kind == "text/event-stream":
            # Each message by itself: one that cannot be read must not hide the others.
            messages = content.split(b"\ndata: ")
            parts = [_message(part, mutate) for part in messages[1:]]
            content = b"\ndata: ".join(messages[:1] + parts)
        elif kind == "application/json":
            content = mutate(content)
        return httpx.Response(status, headers={"Content-Type": kind}, content=content)

    transport = httpx.MockTransport(answer)
    async with Client(
        HttpConnection("http://test", "qd_key", transport=transport, pace=QUICK)
    ) as c:
        call = getattr(getattr(c, method.resource), method.name)
        try:
            return await _accepted(call(**arguments(call)))
        except ClientError as error:
            assert error.message and error.next_step
            return False


def _message(part: bytes, mutate: Mutation) -> bytes:
    data, end, rest = part.partition(b"\n\n")
    return mutate(data) + end + rest


async def _accepted(result: Any) -> bool:
    """Return whether all that a call gives is readable, and check that it can be printed."""
    if isinstance(result, ResumingStream):
        async with cast("ResumingStream[Any]", result) as stream:
            items = list[Any]()
            async for item in stream:
                if isinstance(item, ConnectionLost):
                    break
                items.append(item)
        _print(items)
        return not any(isinstance(item, Malformed) for item in items)
    if hasattr(result, "__aenter__"):
        async with result as parts:
            _ = [part async for part in parts]
        return True
    if isinstance(result, AsyncIterable):
        items = list[Any]()
        async for item in cast("AsyncIterable[Any]", result):
            items.append(item)
            if len(items) == MOST_ITEMS:
                break
        _print(items)
        return True
    _print(await result)
    return True


def _print(value: Any) -> None:
    printed = json_text({"value": value})
    assert harm_in_text(printed) is None
    json.loads(printed, parse_int=_countable)


def _countable(digits: str) -> int:
    assert len(digits) <= 20, "a number that the screen can neither count with nor show"
    return int(digits)


TOKENS = [
    *("1e999", "-1e999", "NaN", "Infinity", "9" * 5_000, "-" + "9" * 5_000, "1E400", "-0", "tru", ""),
    *("[" * 150 + "]" * 150, "[" * 5_000 + "]" * 5_000, '{"a":' * 150 + "1" + "}" * 150),
    *('{"a":1,"a":2}', "[" + "{}," * 2_000 + "{}]", '"\\ud83d"', '"\x01"'),
]  # fmt: skip
"""Parts of a JSON text that no value becomes."""
NAMES = ["", "x", "__class__", "model_config", "text \x1b[31m"]
VALUES: list[Any] = [
    *(None, True, False, 0, -1, 0.5, "", "x", [], {}, [[]], [None], {"": None}, {"a": {"a": 1}}),
    *(KNOWN, "active", "2026-01-02T00:00:00Z", "0001-01-01T00:00:00+14:00", "\0", "\ud800", "9" * 50),
    *(2**31, 2**63, 2**64, -(2**63) - 1, 10**400, "x" * 100_000, "é" * 1_000, "../" * 100, "\r\n"),
    *(f"<token {number}>" for number in range(len(TOKENS))),
]  # fmt: skip


def mutated(by: random.Random) -> Mutation:
    """Return what exchanges one to three parts of a JSON text."""

    def mutate(content: bytes) -> bytes:
        value: Any = {"": json.loads(content)}
        for _ in range(by.choice((1, 1, 2, 3))):
            _exchange(by.choice(list(_places(value))), by)
        text = re.sub('"<token ([0-9]+)>"', lambda at: TOKENS[int(at[1])], json.dumps(value[""]))
        return text.encode()

    return mutate


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each list and object with each of its keys."""
    pairs: Any = value.items() if isinstance(value, dict) else enumerate(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType, reportUnknownArgumentType]
    for key, inner in list(pairs):
        yield value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)


def _exchange(place: tuple[Any, Any], by: random.Random) -> None:
    around, key = place
    match by.randrange(6):
        case 0 if isinstance(around, dict) and key:
            del around[key]
        case 0 | 1 if isinstance(around, list):
            around[:] = [around[key]] * by.choice((0, 2, 300))
        case 2 if isinstance(around, dict) and key:
            around[by.choice(NAMES)] = around.pop(key)
        case _:
            around[key] = by.choice(by.choice((VALUES, VALUES, SEQUENCES)))


def read_answer(data: bytes) -> bool:
    """Read the answer to a method as it is, if the data is its number; else one that the data exchanges."""
    if data.isdigit() and int(data) < len(methods()):
        return read(methods()[int(data)], lambda content: content)
    by = random.Random(data)
    return read(by.choice(methods()), mutated(by))
