"""Declare routes; find the route of a request, once, and the callers that it admits.

The framework tries one route after the other, each with a regular expression. Here only routes
whose segments can match are tried, in the same order. The path alone decides: the first route with
the request's path, and others of the same path, have all its methods.

A route declares which bearers it accepts; roles are checked by its dependencies. It accepts keys, and
tokens that name an organization, unless it is marked otherwise:

    @router.post("/v1/previews", status_code=201)
    @admits(keys=False, tokens=False, engines=True)
    async def open_preview(...): ...

The mark must be below the route's own decorator.

Routes of one replica are written once, on a router made by `replica_router`, with paths relative to
the replica (`""`, `"/chats"`, ...). They have the replica as a parameter `workspace: Workspace`
(`service.context`). `both_families` serves them under both of the contract's names
(docs/interface.md 3).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fastapi import APIRouter
from fastapi.routing import RouteContext, iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

FOUND = "quarterdeck.route"
"""In the scope of a request: its `FoundRoute`."""

MARK = "__access__"

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


@dataclass(frozen=True)
class Access:
    """The bearers that a route accepts."""

    keys: bool = True
    tokens: bool = True
    engines: bool = False
    """Callers inside a workspace."""
    organization: bool = True
    """Whether a token must name an organization."""
    public: bool = False
    """Callers need no bearer, except over the socket for sandboxes."""
    public_inside: bool = False
    """Callers over the socket for sandboxes need none either."""


ORDINARY = Access()


def admits(
    *,
    keys: bool = True,
    tokens: bool = True,
    engines: bool = False,
    organization: bool = True,
    public: bool = False,
    public_inside: bool = False,
) -> Callable[[Endpoint], Endpoint]:
    """Mark a route's function with the bearers it takes."""

    def mark(endpoint: Endpoint) -> Endpoint:
        access = Access(keys, tokens, engines, organization, public, public_inside)
        setattr(endpoint, MARK, access)
        return endpoint

    return mark


def access_of(endpoint: Any) -> Access:
    """Return the bearers that a route's function accepts."""
    return getattr(endpoint, MARK, ORDINARY)


@dataclass(frozen=True)
class FoundRoute:
    """The route of a request; without one, the other methods of its path, if any."""

    route: BaseRoute | None = None
    scope: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The values that the route adds to the scope."""
    access: Access = ORDINARY
    allowed: frozenset[str] = frozenset()

    @property
    def is_known(self) -> bool:
        """Whether any route has this path, whatever the method."""
        return self.route is not None or bool(self.allowed)

    @property
    def path_id(self) -> str:
        """The id in the path, or an empty text."""
        return str(self.scope.get("path_params", {}).get("id", ""))


NO_ROUTE = FoundRoute()


@dataclass
class _Served:
    """The routes of one path, by number, and their methods."""

    routes: list[tuple[int, RouteContext]] = field(default_factory=list[tuple[int, RouteContext]])
    methods: set[str] = field(default_factory=set[str])

    def add(self, number: int, route: RouteContext) -> None:
        self.routes.append((number, route))
        self.methods |= route.methods or set()


@dataclass
class _Node:
    """A node in the tree of path segments.

    Routes `here` end at this node; those `beyond` match any rest of the path.
    """

    segments: dict[str, "_Node"] = field(default_factory=dict[str, "_Node"])
    anything: "_Node | None" = None
    here: _Served = field(default_factory=_Served)
    beyond: _Served = field(default_factory=_Served)

    def add(self, segments: Sequence[str], number: int, route: RouteContext) -> None:
        """Add a route below this node."""
        if not segments:
            self.here.add(number, route)
        elif ":path}" in segments[0]:
            self.beyond.add(number, route)
        elif "{" in segments[0]:
            self.anything = self.anything or _Node()
            self.anything.add(segments[1:], number, route)
        else:
            self.segments.setdefault(segments[0], _Node()).add(segments[1:], number, route)

    def lead(self, segments: Sequence[str]) -> Iterator[_Served]:
        """Yield the paths that match the segments, in no order."""
        if self.beyond.routes and segments:
            yield self.beyond
        if not segments:
            if self.here.routes:
                yield self.here
            return
        for node in (self.segments.get(segments[0]), self.anything):
            if node is not None:
                yield from node.lead(segments[1:])


class RouteTrie(BaseRoute):
    """All routes as one. `find` is called by `AuthMiddleware`; the framework gets its result."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self.routes = routes
        self._root: _Node | None = None

    def find(self, scope: Scope) -> FoundRoute:
        """Return the route with the path and the method of a request."""
        for served in self._candidates(scope["path"]):
            for number, route in served.routes:
                match, route_match = route.matches(scope)
                access = access_of(route.endpoint)
                if match is not Match.NONE and scope["method"] not in served.methods:
                    public = access if access.public else ORDINARY
                    return FoundRoute(access=public, allowed=frozenset(served.methods))
                if match is Match.FULL:
                    return FoundRoute(self.routes[number], route_match, access)
        return NO_ROUTE

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return the found route of a request."""
        route_match: FoundRoute = scope.get(FOUND, NO_ROUTE)
        if route_match.route is not None:
            return Match.FULL, dict(route_match.scope)
        return Match.PARTIAL if route_match.is_known else Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the route that was found.

        Raises:
            HTTPException: 405 with all methods of the path.
        """
        route_match: FoundRoute = scope[FOUND]
        if route_match.route is None:
            # Every GET has a HEAD (`middleware.Head`).
            allowed = (
                route_match.allowed | {"HEAD"}
                if "GET" in route_match.allowed
                else route_match.allowed
            )
            raise HTTPException(405, headers={"Allow": ", ".join(sorted(allowed))})
        await route_match.route.handle(scope, receive, send)

    def _candidates(self, path: str) -> list[_Served]:
        if self._root is None:  # at the first request: a start does not wait for it
            self._root = self._tree()
        return sorted(self._root.lead(path.split("/")), key=lambda served: served.routes[0][0])

    def _tree(self) -> _Node:
        root = _Node()
        for number, route in enumerate(self.routes):
            for context in iter_route_contexts([route]):
                root.add((context.path or "").split("/"), number, context)
        return root


FAMILIES = ("/v1/replica/{id}", "/v1/workspaces/{id}")


def replica_router(tag: str) -> APIRouter:
    """Return a router for paths below one replica; pass it through `both_families`."""
    return APIRouter(tags=[tag])


def both_families(*routers: APIRouter) -> APIRouter:
    """Return a router of the given ones below `/v1/replica/{id}` and `/v1/workspaces/{id}`.

    `service.app` lists the result, without a prefix.
    """
    both = APIRouter()
    for family in FAMILIES:
        for router in routers:
            both.include_router(router, prefix=family)
    return both
