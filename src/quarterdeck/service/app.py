"""The application: routers, gate, failures, and the life of what runs behind them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from starlette.middleware import Middleware

from quarterdeck import __version__
from quarterdeck.service.automations.runner import AutomationRunner
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.failures import install_handlers
from quarterdeck.service.files.search import FileSearch
from quarterdeck.service.forwarding.middleware import Forwarding
from quarterdeck.service.forwarding.upstream import Upstreams
from quarterdeck.service.gate import Gate, Guard
from quarterdeck.service.identity.authenticator import Authenticator
from quarterdeck.service.identity.doors import Doors
from quarterdeck.service.outward.outward import Outward
from quarterdeck.service.presence import Presence
from quarterdeck.service.previews.registry import Previews
from quarterdeck.service.routes import (
    agents,
    api_keys,
    auth,
    automation_checks,
    automation_webhooks,
    automations,
    canvas,
    chatapp,
    chats,
    credentials,
    description,
    environment_files,
    environment_hooks,
    environment_mcps,
    environment_skills,
    environment_variables,
    environments,
    events,
    exec,
    health,
    history,
    hook_tests,
    hooks,
    host_webhooks,
    messages,
    previews,
    replicas,
    repo_files,
    repositories,
    services,
    terminals,
    users,
    warm_pools,
    workspaces,
)
from quarterdeck.service.signposts import Signposts

# Literal paths such as /v1/replica/repositories come before those with an id in their place, and
# `credentials`, whose first word may be anything, last.
RESOURCES = (
    health,
    description,
    services,
    agents,
    repositories,
    environments,
    environment_variables,
    environment_files,
    environment_skills,
    environment_mcps,
    environment_hooks,
    replicas,
    workspaces,
    history,
    events,
    chats,
    messages,
    exec,
    terminals,
    hooks,
    hook_tests,
    warm_pools,
    canvas,
    repo_files,
    previews,
    automation_checks,
    automation_webhooks,
    host_webhooks,
    automations,
    auth,
    api_keys,
    users,
    chatapp,
    credentials,
)

# Not included: the framework would look through each route once more for that. They are the same in
# each application of a process.
ROUTES = [route for module in RESOURCES for route in module.router.routes]
SIGNPOSTS, DOORS = Signposts(ROUTES), Doors(ROUTES)

# The framework would export requests and errors to whatever the environment names.
SILENT: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


def build_app(context: ServiceContext) -> FastAPI:
    """The application over a context; its lifespan starts and closes `context.fleet`."""
    authenticator = Authenticator(context)
    upstreams = Upstreams(context.home_id, context.stopping)
    forwarding = Middleware(Forwarding, context=context, upstreams=upstreams)
    app = FastAPI(
        title="quarterdeck",
        version=__version__,
        lifespan=_lifespan,
        routes=[SIGNPOSTS],
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        telemetry=SILENT,
        middleware=[
            Middleware(Guard),
            Middleware(Gate, authenticator=authenticator, doors=DOORS),
            # A database that has one service costs no look for an owner.
            *([forwarding] if context.database.shared else []),
        ],
    )
    app.state.context = context
    app.state.authenticator = authenticator
    app.state.upstreams = upstreams
    app.state.presence = Presence(context)
    app.state.file_search = FileSearch(context)
    app.state.previews = Previews(context)
    app.state.outward = Outward(context)
    app.state.automations = AutomationRunner(context)
    app.state.routes = ROUTES
    app.state.description = None
    install_handlers(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncGenerator[None]:
    context: ServiceContext = app.state.context
    authenticator: Authenticator = app.state.authenticator
    if context.fleet is not None:
        await context.fleet.start()
    await app.state.previews.start()
    await app.state.presence.start()
    app.state.outward.start()
    app.state.automations.start()
    noting = asyncio.create_task(authenticator.uses.run())
    try:
        yield
    finally:
        context.stopping.set()
        context.event_log.end_streams()
        await app.state.presence.close()
        await app.state.upstreams.close()
        await app.state.file_search.close()
        await app.state.previews.close()
        await app.state.automations.close()
        if context.fleet is not None:
            await context.fleet.close()
        await app.state.outward.close()
        ending = [noting] if app.state.description is None else [noting, app.state.description]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
