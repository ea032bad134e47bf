"""Which bearers a route takes. Says nothing of roles, which dependencies of the route check.

A route takes keys, and tokens that name an organization, unless it is marked otherwise:

    @router.post("/v1/previews", status_code=201)
    @admits(keys=False, tokens=False, engines=True)
    async def open_preview(...): ...

The mark must stand below the route's own decorator.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi.routing import RouteContext, iter_route_contexts
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

MARK = "__admits__"

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


@dataclass(frozen=True)
class Door:
    """`organization` says whether a token must name one; `engines` are callers in a workspace."""

    keys: bool = True
    tokens: bool = True
    engines: bool = False
    organization: bool = True


ORDINARY = Door()


def admits(
    *, keys: bool = True, tokens: bool = True, engines: bool = False, organization: bool = True
) -> Callable[[Endpoint], Endpoint]:
    """Marks a route's function with the bearers it takes."""

    def mark(endpoint: Endpoint) -> Endpoint:
        setattr(endpoint, MARK, Door(keys, tokens, engines, organization))
        return endpoint

    return mark


def door_of(endpoint: Any) -> Door:
    """The door of a route's function."""
    return getattr(endpoint, MARK, ORDINARY)


class Doors:
    """Finds the door that a request stands before.

    Only marked routes of the request's method are looked through: that is a handful, and every
    request passes here.
    """

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self._routes = routes
        self._marked: Mapping[str, Sequence[RouteContext]] | None = None

    def of(self, scope: Scope) -> tuple[Door, Mapping[str, Any]]:
        """The door and the parameters of the path; an ordinary one for everything else."""
        if self._marked is None:
            self._marked = _by_method(iter_route_contexts(self._routes))
        for route in self._marked.get(scope["method"], ()):
            match, found = route.matches(scope)
            if match is Match.FULL:
                return door_of(route.endpoint), found["path_params"]
        return ORDINARY, {}

    def is_route(self, scope: Scope) -> bool:
        """Whether any route has this path, whatever the method."""
        # Matching may leave its findings in the scope it is given.
        return any(route.matches(dict(scope))[0] is not Match.NONE for route in self._routes)


def _by_method(routes: Iterable[RouteContext]) -> Mapping[str, Sequence[RouteContext]]:
    """The marked ones among routes, in their order."""
    marked: dict[str, list[RouteContext]] = {}
    for route in routes:
        if hasattr(route.endpoint, MARK):
            for method in route.methods or ():
                marked.setdefault(method, []).append(route)
    return marked
