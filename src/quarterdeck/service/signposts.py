"""Leads a request to its route by the words of the path.

The framework tries one route after the other, each with a regular expression. Here only those are
tried whose words can be the request's, in the same order: which answers, and how, does not change.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fastapi.routing import iter_route_contexts
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

FOUND = "quarterdeck.route"
"""In the scope of a request: the route that answers it."""


@dataclass
class _Post:
    """A place in the tree of words; `here` and `beyond` are numbers of routes.

    Routes `here` end at this place; those `beyond` take whatever follows it.
    """

    words: dict[str, "_Post"] = field(default_factory=dict[str, "_Post"])
    anything: "_Post | None" = None
    here: set[int] = field(default_factory=set[int])
    beyond: set[int] = field(default_factory=set[int])

    def add(self, words: Sequence[str], number: int) -> None:
        """Puts a route below this place."""
        if not words:
            self.here.add(number)
        elif ":path}" in words[0]:
            self.beyond.add(number)
        elif "{" in words[0]:
            self.anything = self.anything or _Post()
            self.anything.add(words[1:], number)
        else:
            self.words.setdefault(words[0], _Post()).add(words[1:], number)

    def lead(self, words: Sequence[str]) -> Iterator[int]:
        """The routes that words can mean, in no order."""
        yield from self.beyond
        if not words:
            yield from self.here
            return
        for post in (self.words.get(words[0]), self.anything):
            if post is not None:
                yield from post.lead(words[1:])


class Signposts(BaseRoute):
    """All routes as one. What the framework would find among them, it finds here."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self.routes = routes
        self._root: _Post | None = None

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """The first route with the path and the method, else the first with the path."""
        other: tuple[Match, Scope] = Match.NONE, {}
        for route in self._candidates(scope["path"]):
            match, found = route.matches(scope)
            if match is Match.FULL:
                return match, {**found, FOUND: route}
            if match is Match.PARTIAL and other[0] is Match.NONE:
                other = match, {**found, FOUND: route}
        return other

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers with the route that was found."""
        await scope[FOUND].handle(scope, receive, send)

    def _candidates(self, path: str) -> list[BaseRoute]:
        if self._root is None:  # at the first request: a start does not wait for it
            self._root = self._tree()
        return [self.routes[number] for number in sorted(set(self._root.lead(path.split("/"))))]

    def _tree(self) -> _Post:
        root = _Post()
        for number, route in enumerate(self.routes):
            for context in iter_route_contexts([route]):
                root.add((context.path or "").split("/"), number)
        return root
