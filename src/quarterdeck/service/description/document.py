"""Puts the description together: the framework's own, corrected where it does not know better."""

import json
from collections.abc import Sequence
from typing import Any

from fastapi.openapi.utils import get_openapi
from fastapi.routing import RouteContext, iter_route_contexts
from starlette.routing import BaseRoute

from quarterdeck.service.description.failures import MEANINGS, derived, response
from quarterdeck.service.gate import API_VERSION, is_public
from quarterdeck.service.identity.doors import Door, door_of
from quarterdeck.wire.errors import ErrorObject

VERSION = "2.0.0"
"""The version of the interface, which is not the program's."""

ORGANIZATION_HEADER = "Service-Org-Id"
VERSION_HEADER = "X-Service-Api-Version"
SECOND_FAMILY = "/v1/workspaces/"

Object = dict[str, Any]

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
    "schema": {"type": "string", "enum": [API_VERSION]},
}
_ORGANIZATION_PARAMETER: Object = {
    "name": ORGANIZATION_HEADER,
    "in": "header",
    "required": False,
    "description": "With a user token: the organization that is meant. Keys fix theirs.",
    "schema": {"type": "string", "format": "uuid"},
}


def describe(routes: Sequence[BaseRoute]) -> bytes:
    """The description as JSON. Takes about half a second of work."""
    document = get_openapi(title="quarterdeck", version=VERSION, routes=routes)
    for route in iter_route_contexts(routes):
        for method in route.methods or ():
            operation = document["paths"].get(route.path_format, {}).get(method.lower())
            if operation is not None:
                _complete(operation, method, route)
    _name(document["paths"])
    _add_components(document.setdefault("components", {}))
    return json.dumps(document, separators=(",", ":")).encode()


def _complete(operation: Object, method: str, route: RouteContext) -> None:
    path = route.path_format or ""
    door = None if is_public(path) else door_of(route.endpoint)
    operation["security"] = _security(door)
    operation["parameters"] = [*_own_parameters(operation), *_headers(door)]
    answers = {
        status: answer for status, answer in operation["responses"].items() if status != "422"
    }
    for status in derived(method, path, route.dependant, door):
        answers[str(status)] = response(status)
    operation["responses"] = dict(sorted(answers.items()))


def _security(door: Door | None) -> list[Object]:
    if door is None:
        return []
    ways: list[Object] = [{"bearer": []}] if door.keys or door.tokens else []
    return [*ways, {"bearer": [], "workspace": []}] if door.engines else ways


def _own_parameters(operation: Object) -> list[Object]:
    ours = (VERSION_HEADER.lower(), ORGANIZATION_HEADER.lower())
    given: list[Object] = operation.get("parameters", [])
    return [one for one in given if one["name"].lower() not in ours]


def _headers(door: Door | None) -> list[Object]:
    takes_tokens = door is not None and door.tokens
    return [_VERSION_PARAMETER, _ORGANIZATION_PARAMETER] if takes_tokens else [_VERSION_PARAMETER]


def _name(paths: dict[str, Object]) -> None:
    """Gives operations the shortest names that no other has; else they keep their long ones."""
    waiting = [
        (operation, path) for path, operations in paths.items() for operation in operations.values()
    ]
    for words in (0, 1):
        named: dict[str, list[tuple[Object, str]]] = {}
        for operation, path in waiting:
            named.setdefault(_short_name(operation, path, words), []).append((operation, path))
        for name, wanted in named.items():
            if len(wanted) == 1:
                wanted[0][0]["operationId"] = name
        waiting = [one for wanted in named.values() if len(wanted) > 1 for one in wanted]


def _short_name(operation: Object, path: str, words: int) -> str:
    """Family, resource, the last `words` literal parts of the path, and the function's name."""
    literals = [part for part in path.split("/") if part and not part.startswith("{")]
    parts = [operation["tags"][0], *literals[len(literals) - words :], operation["summary"]]
    if f"{path}/".startswith(SECOND_FAMILY):
        parts.insert(0, "workspaces")
    return "_".join(parts).lower().replace(" ", "_").replace("-", "_")


def _add_components(components: Object) -> None:
    schemas: Object = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["ErrorObject"] = ErrorObject.model_json_schema()
    components["securitySchemes"] = _SCHEMES
    components["responses"] = {
        f"Error{status}": _error(status, meaning) for status, meaning in MEANINGS.items()
    }


def _error(status: int, meaning: str) -> Object:
    schema = {"$ref": "#/components/schemas/ErrorObject"}
    found: Object = {
        "description": meaning,
        "content": {"application/json": {"schema": schema}},
    }
    header = {401: "WWW-Authenticate", 429: "Retry-After"}.get(status)
    if header is not None:
        found["headers"] = {header: {"schema": {"type": "string"}}}
    return found
