"""The application: routers, middleware, error handlers, and the lifespan."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from quarterdeck import __version__
from quarterdeck.service.agents.routes import agents_router, credentials_router
from quarterdeck.service.automations.routes import (
    automation_checks_router,
    automation_webhooks_router,
    automations_router,
    host_webhooks_router,
)
from quarterdeck.service.chats.routes import chats_router, history_router, messages_router
from quarterdeck.service.environments.routes import (
    environment_parts_router,
    environments_router,
    hook_tests_router,
    warm_pools_router,
)
from quarterdeck.service.fleet.leases import Leases
from quarterdeck.service.forwarding import Forwarding
from quarterdeck.service.git.origin_routes import origin_router
from quarterdeck.service.git.routes import git_router, pull_requests_router
from quarterdeck.service.identity.routes import api_keys_router, auth_router, users_router
from quarterdeck.service.middleware import AuthMiddleware, ErrorMiddleware, Head, install_handlers
from quarterdeck.service.notifications.routes import chatapp_router
from quarterdeck.service.previews.routes import previews_router
from quarterdeck.service.replicas.file_routes import canvas_router, repo_files_router
from quarterdeck.service.replicas.permissions import permissions_router
from quarterdeck.service.replicas.routes import (
    events_router,
    exec_router,
    hooks_router,
    replicas_router,
    workspaces_router,
)
from quarterdeck.service.repositories.routes import repositories_router
from quarterdeck.service.routing import RouteTrie
from quarterdeck.service.search.routes import search_router
from quarterdeck.service.start import ServiceParts
from quarterdeck.service.system_routes import (
    description_router,
    health_router,
    mcp_router,
    services_router,
)
from quarterdeck.service.terminal_routes import terminals_router

# Literal paths such as /v1/replica/repositories come before those with an id in their place, and
# `credentials`, whose first word may be anything, last.
ROUTERS = (
    health_router,
    description_router,
    services_router,
    agents_router,
    repositories_router,
    environments_router,
    environment_parts_router,
    replicas_router,
    workspaces_router,
    history_router,
    events_router,
    chats_router,
    messages_router,
    search_router,
    mcp_router,
    exec_router,
    permissions_router,
    terminals_router,
    hooks_router,
    hook_tests_router,
    warm_pools_router,
    canvas_router,
    git_router,
    pull_requests_router,
    repo_files_router,
    origin_router,
    previews_router,
    automation_checks_router,
    automation_webhooks_router,
    host_webhooks_router,
    automations_router,
    auth_router,
    api_keys_router,
    users_router,
    chatapp_router,
    credentials_router,
)

# Not included: the framework would search every route again for that. They are the same in each
# application of a process.
ROUTES = [route for router in ROUTERS for route in router.routes]
ROUTE_TRIE = RouteTrie(ROUTES)

# The framework would export requests and errors to whatever the environment names.
SILENT: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


def build_app(service: ServiceParts) -> FastAPI:
    """Return the application for the parts of a service, which run for its lifespan."""
    context = service.context
    take = service.leases.take_stopped if service.leases else None
    forwarding = Middleware(Forwarding, context=context, upstreams=service.upstreams, take=take)
    app = FastAPI(
        title="quarterdeck",
        version=__version__,
        lifespan=_lifespan,
        routes=[ROUTE_TRIE],
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        telemetry=SILENT,
        middleware=[
            *([Middleware(Engines, leases)] if (leases := service.leases) else []),
            Middleware(Head),
            Middleware(ErrorMiddleware),
            Middleware(AuthMiddleware, authenticator=service.authenticator, routes=ROUTE_TRIE),
            # A database with one service needs no owner look-up.
            *([forwarding] if context.database.shared else []),
        ],
    )
    app.state.service = service
    app.state.routes = ROUTES
    app.state.description = None
    install_handlers(app)
    return app


class Engines:
    """Serves the WebSockets of engines in containers, which no route knows."""

    def __init__(self, app: ASGIApp, leases: Leases) -> None:
        self._app = app
        self._leases = leases

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "websocket":
            from quarterdeck.service.dial_home import serve_engine

            await serve_engine(self._leases, scope, receive, send)
        else:
            await self._app(scope, receive, send)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncGenerator[None]:
    service: ServiceParts = app.state.service
    try:
        async with service.running():
            yield
    finally:
        description: asyncio.Future[bytes] | None = app.state.description
        if description is not None:
            description.cancel()
            await asyncio.gather(description, return_exceptions=True)
