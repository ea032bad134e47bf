"""Ids and names from a server lead to no other path, in whichever method."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

import httpx
import pytest
from pydantic import BaseModel

from quarterdeck.client.client import _RESOURCES

PLAIN = "plain-id"
HOSTILE = [
    "../x",
    "..",
    ".",
    "a/../../b",
    "a?b=c",
    "a#b",
    "%2e%2e",
    "a%2Fb",
    "a b\n",
    "ä\ud7ff",
    "//",
]
WITH_SLASHES = {"CanvasApi.get"}
"""Methods whose name is a path by itself."""
KNOWN = {
    *("AgentsApi.models", "CredentialsApi.get", "CredentialsApi.set", "CredentialsApi.delete"),
    *("EnvironmentsApi.get", "VariablesApi.list", "HookTestsApi.stream_warm", "GitApi.diff"),
    *("OriginApi.push", "AutomationsApi.webhook", "AutomationsApi.report_check", "CanvasApi.get"),
}


class Asked(Exception):
    """A request was about to be made."""


class Connection:
    """Takes the path of the first request."""

    path = ""
    names: Any = None

    def __getattr__(self, name: str) -> Any:
        def ask(*arguments: Any, **_: Any) -> Any:
            self.path = next(one for one in arguments if isinstance(one, str) and "/" in one)
            raise Asked

        return ask


def methods() -> Iterator[tuple[str, type, Callable[..., Any]]]:
    for module, resource in _RESOURCES.values():
        api = getattr(import_module(f"quarterdeck.client.{module}"), resource)
        for name, method in inspect.getmembers(api, inspect.isfunction):
            if not name.startswith("_"):
                yield f"{resource}.{name}", api, method


def argument(hint: Any, text: str) -> Any:
    """A value of a parameter's type; `text` where it can be text."""
    kinds = get_args(hint) or (hint,)
    if get_origin(hint) is Sequence:
        return [argument(kinds[0], text)]
    if str in kinds:
        return text
    if UUID in kinds:
        return UUID(int=1)
    if inspect.isclass(hint) and issubclass(hint, BaseModel):
        return hint.model_construct()
    return {int: 1, bool: False, bytes: b""}.get(hint, ())


async def path_of(api: type, method: Callable[..., Any], text: str) -> str:
    """The path that a method asks for, or "" if it asks for none by itself."""
    hints = get_type_hints(method)
    given = {
        name: argument(hints.get(name), text)
        for name, parameter in inspect.signature(method).parameters.items()
        if name != "self" and (parameter.default is parameter.empty or hints.get(name) is str)
    }
    connection = Connection()
    connection.names = import_module("quarterdeck.client.names").NEUTRAL
    try:
        made = method(api(connection), **given)
        if inspect.isawaitable(made):
            await made
        elif inspect.isasyncgen(made):
            await anext(made)
    except (Asked, AttributeError, TypeError, ValueError):
        return connection.path
    return connection.path


WITH_ID = sorted(
    (name, api, method)
    for name, api, method in methods()
    if any(
        str in (get_args(hint) or (hint,))
        for parameter, hint in get_type_hints(method).items()
        if parameter != "return"
    )
)


def test_the_methods_that_take_text_are_found() -> None:
    assert {name for name, _, _ in WITH_ID} >= KNOWN


@pytest.mark.parametrize(("name", "api", "method"), WITH_ID, ids=[name for name, _, _ in WITH_ID])
async def test_text_stays_in_its_segment(name: str, api: type, method: Callable[..., Any]) -> None:
    plain = await path_of(api, method, PLAIN)
    assert PLAIN in plain or name not in KNOWN
    before, _, after = plain.partition(PLAIN)
    client = httpx.AsyncClient(base_url="http://host", verify=False)
    for text in HOSTILE:
        path = await path_of(api, method, text)
        if PLAIN not in plain:
            assert path in (plain, ""), text  # some are refused
            continue
        sent = client.build_request("GET", path).url
        shape = sent.raw_path.decode()
        assert shape.startswith(before) and shape.endswith(after), text
        inner = shape.removeprefix(before).removesuffix(after)
        assert "?" not in inner and not sent.fragment, text
        assert "/" not in inner or name in WITH_SLASHES, text
