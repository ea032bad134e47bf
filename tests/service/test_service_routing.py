"""Routes are found as the framework would find them, which tries one after the other."""

import re
from functools import cache
from typing import Any

import pytest
from fastapi.routing import RouteContext, iter_route_contexts
from starlette.routing import BaseRoute, Match

from quarterdeck.service.app import ROUTES
from quarterdeck.service.routing import RouteTrie

FILLINGS = ("7d1f6e0a-9a3b-4c5d-8e7f-001122334455", "global", "repositories", "a b", "a/b")
STRANGE = ("", "/", "//", "/v1", "/v1/", "/v1//replica", "/nowhere", "/v1/replica/", "v1/replica")


@cache
def contexts() -> list[tuple[BaseRoute, RouteContext]]:
    return [(route, one) for route in ROUTES for one in iter_route_contexts([route])]


@cache
def paths() -> list[str]:
    templates = sorted({context.path or "" for _, context in contexts()})
    found = [re.sub(r"\{[^}]*\}", filling, path) for path in templates for filling in FILLINGS]
    return sorted({*found, *(f"{path}/" for path in found), *STRANGE})


def scope_of(method: str, path: str) -> dict[str, Any]:
    return {"type": "http", "method": method, "path": path, "root_path": "", "path_params": {}}


def one_after_the_other(method: str, path: str) -> tuple[Match, BaseRoute | None, Any]:
    """Which route answers when each is tried, and those after the first only if of its path."""
    same = None
    other: tuple[Match, BaseRoute | None, Any] = Match.NONE, None, {}
    for route, context in contexts():
        match, matched = context.matches(scope_of(method, path))
        if match is Match.NONE:
            continue
        template = re.sub(r"\{[^}]*\}", "{}", context.path or "")
        same = same or template
        if template == same and match is Match.FULL:
            return Match.FULL, route, matched
        if template == same:
            other = Match.PARTIAL, None, {}
    return other


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"])
def test_as_the_framework_would_for_one_path(method: str) -> None:
    trie = RouteTrie(ROUTES)
    for path in paths():
        found = trie.find(scope_of(method, path))
        match = Match.NONE if found.route is None else Match.FULL
        match = Match.PARTIAL if found.allowed else match
        assert (match, found.route, found.scope) == one_after_the_other(method, path), path


def test_few_are_tried() -> None:
    """Or nothing would be won: at most one in ten, wherever a request goes."""
    trie = RouteTrie(ROUTES)
    most = max(sum(len(one.routes) for one in trie._candidates(path)) for path in paths())
    assert most <= len(ROUTES) / 10
