"""The OpenAPI description of the service, generated from its routes.

Schemas of the description that no route returns: events, webhooks, error codes, descriptions.

The descriptions of properties are the docstrings below the fields of the wire models. They are read
from the source here, because reading them when the models are built would slow down every program.

The responses of an operation: its errors, and the schema of its streams.

Most follow from the route's parameters: a body, a path, a role, the engine. Errors of the
operation's own work are in `OWN`, or at the route: `@router.post(..., responses=fails(409))`.
"""

import ast
import copy
import inspect
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import RouteContext, iter_route_contexts
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.routing import BaseRoute

from quarterdeck.service.fleet.fleet import FleetDep
from quarterdeck.service.identity.service import AdminDep, UserDep
from quarterdeck.service.middleware import API_VERSION
from quarterdeck.service.notifications.sender import HEADER
from quarterdeck.service.routing import Access, access_of
from quarterdeck.wire.account import TokenRequest
from quarterdeck.wire.automations import AUTOMATION_PAYLOADS, AutomationEvent
from quarterdeck.wire.environment_parts import HookTestEvent, RemoteConfig, StdioConfig
from quarterdeck.wire.errors import STATUS_OF, ErrorCode, ErrorObject
from quarterdeck.wire.events import PAYLOADS, Event
from quarterdeck.wire.history import AGENT_PAYLOADS, AgentEvent, AspTurn
from quarterdeck.wire.replicas import (
    INCLUDES,
    WEBHOOK_DATA,
    RepositoryDiff,
    WebhookCall,
    WebhookType,
)
from quarterdeck.wire.terminals import (
    TerminalError,
    TerminalExit,
    TerminalOutput,
    TerminalReplay,
    TerminalResized,
)

MEANINGS = {
    400: "Missing or invalid parameters, or a malformed body.",
    401: "No valid key, or one of the wrong kind.",
    403: "The caller may not do this.",
    404: "Not found, or another organization's.",
    409: "It exists already, or the current state does not allow it.",
    412: "The resource has changed since it was read.",
    413: "The body is too large.",
    429: "A limit is reached.",
    500: "The service failed.",
    502: "The replica's engine cannot be reached.",
    503: "The replica's engine is starting, or the service cannot use its database now.",
}
"""Every status of an error response; 405 belongs to no operation."""

OWN: dict[tuple[str, str], tuple[int, ...]] = {
    ("POST", "/v1/replica"): (403, 404, 409, 429),
    ("POST", "/v1/workspaces"): (403, 404, 409, 429),
    ("POST", "/v1/environments"): (403, 404, 409),
    ("PATCH", "/v1/environments/{environment_id}"): (403, 409),
    ("DELETE", "/v1/environments/{environment_id}"): (403, 409),
    ("POST", "/v1/auth/approve"): (403,),
    ("POST", "/v1/chatapp/user/connection/test"): (409,),
}
"""By method and path, in addition to those of `derived`."""

ENVIRONMENT_PARTS = "/v1/environments/{environment_id}/"
"""Operations below it may be refused by the environment: 403 not allowed, 409 a duplicate."""


def fails(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return a route's `responses`: the error answers that do not follow from its parameters."""
    return {status: response(status) for status in statuses}


def response(status: int) -> dict[str, Any]:
    """Return the reference to the shared error answer of a status."""
    return {"$ref": f"#/components/responses/Error{status}"}


def reference(name: str) -> dict[str, Any]:
    """Return the reference to a schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def stream_of(name: str) -> dict[int | str, dict[str, Any]]:
    """Return a route's `responses`: server-sent events whose data is an object of a schema."""
    item = {
        "type": "object",
        "properties": {
            "data": {
                "type": "string",
                "description": f"The object {name}, as JSON.",
                "contentMediaType": "application/json",
                "contentSchema": reference(name),
            },
            "id": {
                "type": "string",
                "description": "Where the stream goes on with `Last-Event-ID`, if it can.",
            },
        },
        "required": ["data"],
    }
    # `itemSchema` is of OpenAPI 3.2; older tools use the text schema.
    content = {"text/event-stream": {"schema": {"type": "string"}, "itemSchema": item}}
    return {200: {"description": f"A stream of {name}.", "content": content}}


def derived(method: str, path: str, dependant: Dependant, access: Access) -> set[int]:
    """Return the statuses of an operation's error answers."""
    statuses = {400, 500, 503, *OWN.get((method, path), ())}
    calls = set(_calls(dependant))
    if not access.public:
        statuses |= {401, 429}
        # An organization that the user is not a member of; a token where only keys are accepted.
        statuses.add(404 if access.tokens else 403 if access.keys else 401)
    if "{" in path:
        statuses.add(404)
    if dependant.body_params:
        statuses.add(413)
    if _call_of(AdminDep) in calls:
        statuses.add(403)
    if _call_of(UserDep) in calls:
        statuses.add(401)
    if _call_of(FleetDep) in calls and "{id}" in path:
        statuses |= {409, 502}
    if path.startswith(ENVIRONMENT_PARTS) and method != "GET":
        statuses |= {403, 409}
    return statuses


def _calls(dependant: Dependant) -> Iterable[Any]:
    for dependency in dependant.dependencies:
        yield dependency.call
        yield from _calls(dependency)


def _call_of(annotation: Any) -> Any:
    """Return the function behind an `Annotated[..., Depends(function)]`."""
    return annotation.__metadata__[0].dependency


Object = dict[str, Any]

_TERMINAL = (TerminalReplay, TerminalOutput, TerminalResized, TerminalExit, TerminalError)

_ALTERNATIVES: dict[tuple[str, str], tuple[type[BaseModel], ...]] = {
    ("EnvironmentMcp", "config"): (StdioConfig, RemoteConfig),
    ("CreateMcp", "config"): (StdioConfig, RemoteConfig),
    ("ChangeMcp", "config"): (StdioConfig, RemoteConfig),
    ("RepositoryStatus", "git_diff"): (RepositoryDiff,),
}
"""Models of objects that the wire models leave open, by schema and property."""

_WEBHOOK_SUMMARIES = {
    WebhookType.READY: "A replica has become active",
    WebhookType.TURN_COMPLETED: "A turn has ended",
    WebhookType.ERROR: "A replica has failed",
    WebhookType.DELETED: "A replica has been deleted",
}
_WEBHOOK_DESCRIPTION = """\
Sent to the `webhook_url` of the replica. Any 2xx answer within 10 seconds accepts the call; otherwise
it is tried again after 10 and after 60 seconds, with the same `id`."""


def add_schemas(schemas: Object) -> None:
    """Add schemas that no route returns, and complete those of the models."""
    models: set[type[BaseModel]] = {
        *(Event, AgentEvent, AutomationEvent, HookTestEvent, AspTurn, WebhookCall),
        *(StdioConfig, RemoteConfig, RepositoryDiff, ErrorObject, TokenRequest),
        *_TERMINAL,
        *PAYLOADS.values(),
        *AGENT_PAYLOADS.values(),
        *AUTOMATION_PAYLOADS.values(),
        *WEBHOOK_DATA.values(),
    }
    _, generated = models_json_schema(
        [(model, "serialization") for model in sorted(models, key=lambda model: model.__name__)],
        ref_template="#/components/schemas/{model}",
    )
    for name, schema in generated["$defs"].items():
        schemas.setdefault(name, schema)
    for name, schema in schemas.items():
        _describe(name, schema)
    for (name, field), alternatives in _ALTERNATIVES.items():
        _specify(schemas[name]["properties"], field, alternatives)
    _add_variants(schemas, "Event", "payload", PAYLOADS)
    _add_variants(schemas, "AgentEvent", "payload", AGENT_PAYLOADS)
    _add_variants(schemas, "AutomationEvent", "payload", AUTOMATION_PAYLOADS)
    _add_variants(schemas, "WebhookCall", "data", WEBHOOK_DATA)
    schemas["TerminalEvent"] = _one_of(
        "One message of a terminal's stream.",
        {model.model_fields["type"].default: model.__name__ for model in _TERMINAL},
    )
    schemas["ErrorCode"] = {
        "type": "string",
        "enum": [code.value for code in ErrorCode],
        "description": inspect.getdoc(ErrorCode),
    }
    code: Object = schemas["ErrorObject"]["properties"]["code"]
    schemas["ErrorObject"]["properties"]["code"] = {
        **reference("ErrorCode"),
        "description": code["description"],
    }


def webhooks() -> Object:
    """Return the path items of the calls that the service makes."""
    return {type.value: {"post": _webhook(type)} for type in WebhookType}


def _webhook(type: WebhookType) -> Object:
    schema = reference(_variant_name("WebhookCall", type))
    signature = {
        "name": HEADER,
        "in": "header",
        "required": True,
        "description": "`sha256=` and the hexadecimal HMAC-SHA256 of the raw body, with the"
        " organization's webhook secret (`GET /v1/organization/webhook-secret`) as the key.",
        "schema": {"type": "string", "pattern": "^sha256=[0-9a-f]{64}$"},
    }
    return {
        "operationId": f"webhook_{type.name.lower()}",
        "tags": ["webhooks"],
        "summary": _WEBHOOK_SUMMARIES[type],
        "description": _WEBHOOK_DESCRIPTION,
        "parameters": [signature],
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": {"2XX": {"description": "The call is accepted."}},
    }


def error_schema(status: int) -> Object:
    """Return the schema of the error answers with a status: its codes."""
    codes = [code.value for code in ErrorCode if STATUS_OF[code] == status]
    code = {"enum": codes, "description": "Reason, for programs: one of those with this status."}
    return {"allOf": [reference("ErrorObject"), {"properties": {"code": code}}]}


def _add_variants(
    schemas: Object, name: str, field: str, models: Mapping[Any, type[BaseModel]]
) -> None:
    """Turn an envelope into one schema for each type, discriminated by `type`."""
    envelope = schemas[name]
    names: dict[str, str] = {}
    for type, model in models.items():
        variant = copy.deepcopy(envelope)
        names[type.value] = variant["title"] = _variant_name(name, type)
        variant["description"] = inspect.getdoc(model)
        properties = variant["properties"]
        description = properties["type"]["description"]
        properties["type"] = {"type": "string", "const": type.value, "description": description}
        description = properties[field]["description"]
        properties[field] = {**reference(model.__name__), "description": description}
        variant["required"] = list(properties)
        schemas[variant["title"]] = variant
    schemas[name] = _one_of(envelope["description"], names)


def _one_of(description: str, names: Mapping[str, str]) -> Object:
    mapping = {type: reference(name)["$ref"] for type, name in names.items()}
    return {
        "description": description,
        "oneOf": [reference(name) for name in names.values()],
        "discriminator": {"propertyName": "type", "mapping": mapping},
    }


def _variant_name(envelope: str, type: str) -> str:
    parts = type.replace(".", " ").replace("-", " ").replace("_", " ").split()
    return envelope + "".join(word.capitalize() for word in parts)


def _specify(properties: Object, field: str, alternatives: Iterable[type[BaseModel]]) -> None:
    described = properties[field]
    nullable = [choice for choice in described.get("anyOf", ()) if choice == {"type": "null"}]
    properties[field] = {
        "anyOf": [*(reference(model.__name__) for model in alternatives), *nullable],
        "description": described["description"],
    }


def _describe(name: str, schema: Object) -> None:
    """Put the docstrings of a model's fields into its schema."""
    model = _models().get(name.removesuffix("-Input").removesuffix("-Output"))
    for field, info in ({} if model is None else model.model_fields).items():
        shown = schema["properties"].get(info.serialization_alias or info.alias or field)
        if shown is not None and "description" not in shown and model is not None:
            for owner in model.__mro__:
                if text := _docstrings(owner.__module__).get((owner.__qualname__, field)):
                    shown["description"] = text
                    break


@cache
def _models() -> dict[str, type[BaseModel]]:
    """Return all loaded models of the wire, by name."""
    models: dict[str, type[BaseModel]] = {}
    waiting: list[type[BaseModel]] = [BaseModel]
    while waiting:
        model = waiting.pop()
        waiting += model.__subclasses__()
        if model.__module__.startswith("quarterdeck.wire."):
            models[model.__name__] = model
    return models


@cache
def _docstrings(module: str) -> dict[tuple[str, str], str]:
    """Return the docstrings below the fields of a module's classes, by class and field."""
    if not module.startswith("quarterdeck."):
        return {}
    docstrings: dict[tuple[str, str], str] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.ClassDef):
            for field, below in zip(node.body, node.body[1:], strict=False):
                match field, below:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str(text))),
                    ):
                        docstrings[node.name, name] = " ".join(text.split())
                    case _:
                        pass
    return docstrings


VERSION = "2.0.0"
"""The version of the interface, not of the program."""

ORGANIZATION_HEADER = "Service-Org-Id"
VERSION_HEADER = "X-Service-Api-Version"
SECOND_FAMILY = "/v1/workspaces/"


_SCHEMES: Object = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An organization key, a personal key, a user token, or the engine's secret.",
    },
    "workspace": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Workspace-Id",
        "description": "Beside the engine's secret: the workspace that asks.",
    },
}
_VERSION_PARAMETER: Object = {
    "name": VERSION_HEADER,
    "in": "header",
    "required": False,
    "description": "Version of the interface that the client was written for.",
    "schema": {"type": "string", "enum": [API_VERSION]},
}
_ORGANIZATION_PARAMETER: Object = {
    "name": ORGANIZATION_HEADER,
    "in": "header",
    "required": False,
    "description": "With a user token: the organization that is meant. Keys fix theirs.",
    "schema": {"type": "string", "format": "uuid"},
}
_TAGGED = ('/EnvironmentAnswer"', '/AutomationAnswer"')
"""References to the schemas of answers that carry an entity tag."""
_ETAG: Object = {
    "description": "Entity tag of this state of the record, for `If-Match` of a PATCH.",
    "schema": {"type": "string"},
}

_IDS = {
    "automations": "Id of the automation.",
    "files": "Id of the file.",
    "keys": "Id of the key.",
    "api-keys": "Id of the key.",
    "mcps": "Id of the MCP server.",
    "replica": "Id of the replica.",
    "repositories": "Id of the repository.",
    "repository-sets": "Id of the repository set.",
    "skills": "Id of the skill.",
    "variables": "Id of the variable.",
    "warm-pools": "Id of the warm pool.",
    "workspaces": "Id of the replica.",
}
"""What `{id}` is, by the part of the path before it."""

_PARAMETERS = {
    "agent": "Identifier of the agent.",
    "beforeCursor": "Only what is before this place: `beforeCursor` of a page.",
    "beforeEvent": "Only events before this index: `eventsStartIndex` of a page.",
    "beforeTurn": "Only turns before this index: `turnsStartIndex` of a page.",
    "chat_id": "Id of the chat.",
    "check_run_id": "Id of the check.",
    "cursor": "Next page: `nextCursor` of the page before it.",
    "enabled": "Only those that are enabled, or only those that are not.",
    "environment_id": "Id of the environment, or `global` for the global one where it is read.",
    "execution_id": "Id of the run.",
    "filename": "Path in the canvas.",
    "repository": "Name of a repository of the replica.",
    "include": "Further parts of the record, separated by commas.",
    "last-event-id": "Continue after the message with this `id`.",
    "limit": "Most entries on a page.",
    "message_id": "Id of the message.",
    "page": "Number of the page, from 1.",
    "path": "Path in the repository.",
    "port": "Port in the workspace.",
    "prefix": "Only files whose path starts with this.",
    "provider": "Name of the provider; each agent's identifier is one.",
    "q": "Words to search for.",
    "refresh": "Build a new index first.",
    "repoName": "Name of the repository.",
    "scope": "`org`: the organization's. `user`: the caller's own. `all`: both.",
    "search": "Only those with this text in their name or description.",
    "session_id": "Id of the terminal session.",
    "source": "Only replicas created from this.",
    "status": "Only replicas in this state.",
    "token": "Token of the webhook.",
    "trigger_type": "Only those with a trigger of this type.",
    "x-signature-256": "`sha256=` and the hexadecimal HMAC-SHA256 of the raw body.",
    "x-github-event": "Type of the host's event.",
    "x-gitlab-event": "Type of the host's event.",
}


def describe(routes: Sequence[BaseRoute]) -> bytes:
    """Return the description as JSON. Takes about half a second of work."""
    document = get_openapi(title="quarterdeck", version=VERSION, routes=routes)
    for route in iter_route_contexts(routes):
        for method in route.methods or ():
            operation = document["paths"].get(route.path_format, {}).get(method.lower())
            if operation is not None:
                _complete(operation, method, route)
    _name(document["paths"])
    document["webhooks"] = webhooks()
    _add_components(document.setdefault("components", {}))
    return json.dumps(document, separators=(",", ":")).encode()


def _complete(operation: Object, method: str, route: RouteContext) -> None:
    path = route.path_format or ""
    access = access_of(route.endpoint)
    operation["security"] = _security(access)
    operation["parameters"] = [*_own_parameters(operation, path), *_headers(access)]
    answers = {
        status: answer for status, answer in operation["responses"].items() if status != "422"
    }
    for answer in answers.values():
        if any(name in json.dumps(answer.get("content")) for name in _TAGGED):
            answer["headers"] = {"ETag": _ETAG}
    for status in derived(method, path, route.dependant, access):
        answers[str(status)] = response(status)
    operation["responses"] = dict(sorted(answers.items()))


def _security(access: Access) -> list[Object]:
    if access.public:
        return []
    ways: list[Object] = [{"bearer": []}] if access.keys or access.tokens else []
    return [*ways, {"bearer": [], "workspace": []}] if access.engines else ways


def _own_parameters(operation: Object, path: str) -> list[Object]:
    shared = (VERSION_HEADER.lower(), ORGANIZATION_HEADER.lower())
    parameters: list[Object] = operation.get("parameters", [])
    own = [parameter for parameter in parameters if parameter["name"].lower() not in shared]
    for parameter in own:
        name = parameter["name"]
        if name == "id":
            parameter["description"] = _IDS.get(path.split("/{id}")[0].rpartition("/")[2], "")
        elif "description" not in parameter:
            parameter["description"] = _PARAMETERS.get(name, "")
        if name == "include":
            values = {"type": "array", "items": {"type": "string", "enum": list(INCLUDES)}}
            parameter |= {"schema": values, "style": "form", "explode": False}
    return own


def _headers(access: Access) -> list[Object]:
    takes_tokens = access.tokens and not access.public
    return [_VERSION_PARAMETER, _ORGANIZATION_PARAMETER] if takes_tokens else [_VERSION_PARAMETER]


def _name(paths: dict[str, Object]) -> None:
    """Give operations the shortest unique names; the others keep their long ones."""
    waiting = [
        (operation, path) for path, operations in paths.items() for operation in operations.values()
    ]
    for count in (0, 1):
        named: dict[str, list[tuple[Object, str]]] = {}
        for operation, path in waiting:
            named.setdefault(_short_name(operation, path, count), []).append((operation, path))
        for name, wanted in named.items():
            if len(wanted) == 1:
                wanted[0][0]["operationId"] = name
        waiting = [
            candidate for wanted in named.values() if len(wanted) > 1 for candidate in wanted
        ]


def _short_name(operation: Object, path: str, count: int) -> str:
    """Return family, resource, the path's last `count` literal parts, and the function's name."""
    literals = [part for part in path.split("/") if part and not part.startswith("{")]
    parts = [operation["tags"][0], *literals[len(literals) - count :], operation["summary"]]
    if f"{path}/".startswith(SECOND_FAMILY):
        parts.insert(0, "workspaces")
    return "_".join(parts).lower().replace(" ", "_").replace("-", "_")


def _add_components(components: Object) -> None:
    schemas: Object = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    add_schemas(schemas)
    components["securitySchemes"] = _SCHEMES
    components["responses"] = {
        f"Error{status}": _error(status, meaning) for status, meaning in MEANINGS.items()
    }


def _error(status: int, meaning: str) -> Object:
    answer: Object = {
        "description": meaning,
        "content": {"application/json": {"schema": error_schema(status)}},
    }
    header = {401: "WWW-Authenticate", 429: "Retry-After", 503: "Retry-After"}.get(status)
    if header is not None:
        answer["headers"] = {header: {"schema": {"type": "string"}}}
    return answer
