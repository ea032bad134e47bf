"""Which error answers an operation can give.

Most follow from what the route takes: a body, a path, a role, the engine. What only the operation's
own work can refuse stands in `OWN`, or at the route: `@router.post(..., responses=fails(409))`.
"""

from collections.abc import Iterable
from typing import Any

from fastapi.dependencies.models import Dependant

from quarterdeck.service.auth import AdminDep, UserDep
from quarterdeck.service.fleet.fleet import FleetDep
from quarterdeck.service.identity.doors import Door

MEANINGS = {
    400: "Missing or invalid parameters, or a malformed body.",
    401: "No valid key, or one of the wrong kind.",
    403: "The caller may not do this.",
    404: "Not found, or another organization's.",
    409: "It exists already, or the current state does not allow it.",
    412: "What it was based on has changed.",
    413: "The body is too large.",
    429: "A limit is reached.",
    500: "The service failed.",
    502: "The replica's engine cannot be reached.",
    503: "The replica's engine is starting.",
}
"""Every status of an error answer; 405 belongs to no operation."""

OWN: dict[tuple[str, str], tuple[int, ...]] = {
    ("POST", "/v1/replica"): (403, 404, 409, 429),
    ("POST", "/v1/workspaces"): (403, 404, 409, 429),
    ("POST", "/v1/environments"): (403, 404, 409),
    ("PATCH", "/v1/environments/{environment_id}"): (403, 409),
    ("DELETE", "/v1/environments/{environment_id}"): (403, 409),
    ("POST", "/v1/auth/approve"): (403,),
    ("POST", "/v1/chatapp/user/connection/test"): (409,),
}
"""By method and path, beyond what `derived` finds."""

ENVIRONMENT_PARTS = "/v1/environments/{environment_id}/"
"""Below it everything may be refused by the environment: 403 not allowed, 409 a duplicate."""


def fails(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For a route's `responses`: error answers that do not follow from what it takes."""
    return {status: response(status) for status in statuses}


def response(status: int) -> dict[str, Any]:
    """The reference to the shared error answer of a status."""
    return {"$ref": f"#/components/responses/Error{status}"}


def derived(method: str, path: str, dependant: Dependant, door: Door | None) -> set[int]:
    """The statuses of an operation's error answers; no door is for everybody."""
    found = {400, 500, *OWN.get((method, path), ())}
    calls = set(_calls(dependant))
    if door is not None:
        found |= {401, 429}
        # An organization that the user is not a member of; a token where only keys are taken.
        found.add(404 if door.tokens else 403 if door.keys else 401)
    if "{" in path:
        found.add(404)
    if dependant.body_params:
        found.add(413)
    if _call_of(AdminDep) in calls:
        found.add(403)
    if _call_of(UserDep) in calls:
        found.add(401)
    if _call_of(FleetDep) in calls and "{id}" in path:
        found |= {409, 502, 503}
    if path.startswith(ENVIRONMENT_PARTS) and method != "GET":
        found |= {403, 409}
    return found


def _calls(dependant: Dependant) -> Iterable[Any]:
    for one in dependant.dependencies:
        yield one.call
        yield from _calls(one)


def _call_of(annotation: Any) -> Any:
    """The function behind an `Annotated[..., Depends(function)]`."""
    return annotation.__metadata__[0].dependency
