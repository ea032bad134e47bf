"""The HTTP routes, one module per resource, each with a `router`. Thin: they parse and answer.

Below a route anything may raise `ApiError`. Parsing failures become 400 by themselves. Ids in a
path are declared as `GivenId`. Routes of one replica are written once on a router made by
`replica_router()`, with paths relative to the replica (`""`, `"/chats"`, ...), and take the
replica itself as a parameter `workspace: Workspace` (`service.context`); `both_families` serves
them under both of the contract's names (INTERFACE 3).
"""

from fastapi import APIRouter

FAMILIES = ("/v1/replica/{id}", "/v1/workspaces/{id}")


def replica_router(tag: str) -> APIRouter:
    """A router for paths below one replica; pass it through `both_families`."""
    return APIRouter(tags=[tag])


def both_families(*routers: APIRouter) -> APIRouter:
    """One router that serves the given ones below `/v1/replica/{id}` and `/v1/workspaces/{id}`.

    A module's own `router` is the result: `router = both_families(_replica_routes)`, included by
    `service.app` without a prefix. A module with other routes besides adds them to the result.
    """
    both = APIRouter()
    for family in FAMILIES:
        for router in routers:
            both.include_router(router, prefix=family)
    return both
