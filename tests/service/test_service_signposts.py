"""Signposts find what the framework would find, trying one route after the other."""

import re
from typing import Any

import pytest
from fastapi.routing import iter_route_contexts
from starlette.routing import BaseRoute, Match

from quarterdeck.service.app import ROUTES
from quarterdeck.service.signposts import FOUND, Signposts

TEMPLATES = sorted({context.path or "" for context in iter_route_contexts(ROUTES)})
FILLINGS = ("7d1f6e0a-9a3b-4c5d-8e7f-001122334455", "global", "repositories", "a b", "a/b")
STRANGE = ("", "/", "//", "/v1", "/v1/", "/v1//replica", "/nowhere", "/v1/replica/", "v1/replica")


def paths() -> list[str]:
    found = [re.sub(r"\{[^}]*\}", filling, path) for path in TEMPLATES for filling in FILLINGS]
    return sorted({*found, *(f"{path}/" for path in found), *STRANGE})


def scope_of(method: str, path: str) -> dict[str, Any]:
    return {"type": "http", "method": method, "path": path, "root_path": "", "path_params": {}}


def one_after_the_other(method: str, path: str) -> tuple[Match, BaseRoute | None, Any]:
    partial = None
    for route in ROUTES:
        match, found = route.matches(scope_of(method, path))
        if match is Match.FULL:
            return match, route, found
        if match is Match.PARTIAL and partial is None:
            partial = match, route, found
    return partial or (Match.NONE, None, {})


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"])
def test_as_the_framework_would(method: str) -> None:
    signposts = Signposts(ROUTES)
    for path in paths():
        match, found = signposts.matches(scope_of(method, path))
        route = found.get(FOUND)
        own = {name: value for name, value in found.items() if name != FOUND}
        assert (match, route, own) == one_after_the_other(method, path), path


def test_few_are_tried() -> None:
    """Or nothing would be won: at most one in ten, wherever a request goes."""
    signposts = Signposts(ROUTES)
    most = max(len(signposts._candidates(path)) for path in paths())
    assert most <= len(ROUTES) / 10
