"""The table of operations and what is served are the same."""

import inspect
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from quarterdeck.client import Client, HttpConnection
from tests.service.operations import OPERATIONS, WITHOUT_CLIENT, Operation

TESTS = Path(__file__).parents[1]
SPECIFIED = range(1, 24)


def title(operation: Operation) -> str:
    return f"{operation.method} {operation.path}"


each = pytest.mark.parametrize("operation", OPERATIONS, ids=title)


@pytest.fixture
def database_kind() -> str:
    return "sqlite"


@pytest.fixture
def served(app: FastAPI) -> set[tuple[str, str]]:
    return {
        (method, str(route.path_format))
        for route in iter_route_contexts(app.state.routes)
        for method in route.methods or ()
    }


def test_every_operation_of_the_specification_is_in_the_table() -> None:
    named = [word for one in OPERATIONS for word in one.source.split() if word.startswith("S")]
    assert sorted(int(word[1:]) for word in named) == list(SPECIFIED)


def test_nothing_is_in_it_twice() -> None:
    assert len({(one.method, one.path) for one in OPERATIONS}) == len(OPERATIONS)


def test_what_is_served_is_in_the_table(served: set[tuple[str, str]]) -> None:
    listed = {(one.method, path) for one in OPERATIONS for path in one.family_paths}
    assert served - listed - WITHOUT_CLIENT == set()


def test_what_is_in_the_table_is_served(served: set[tuple[str, str]]) -> None:
    for one in OPERATIONS:
        for path in one.family_paths:
            found = (one.method, path) in served
            assert found != ("route" in one.absent), f"{one.method} {path}"


@each
async def test_each_has_a_client_method(operation: Operation) -> None:
    resource, _, name = operation.client.partition(".")
    client = Client(HttpConnection("http://127.0.0.1:1", None))
    await client.aclose()
    method = getattr(getattr(client, resource, None), name, None)
    assert callable(method) != ("client" in operation.absent), operation.client
    if method is not None:
        assert inspect.getdoc(method), operation.client


@each
def test_each_has_a_test(operation: Operation) -> None:
    assert bool(operation.tests) != ("tests" in operation.absent)
    literals = [part for part in operation.path.split("/") if part and not part.startswith("{")]
    words = (literals[-1], operation.client, operation.client.rpartition(".")[2])
    for name in operation.tests:
        assert any(word in (TESTS / name).read_text() for word in words), name
