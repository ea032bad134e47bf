"""Which environments a caller reaches.

Shared ones, the global one too, are read and changed by every member; a personal one by its user
alone. To others it is not there.
"""

from sqlalchemy import Connection

from quarterdeck.service.auth import Caller
from quarterdeck.service.errors import ApiError
from quarterdeck.service.records.environment_layers import Layer, layers_of
from quarterdeck.service.records.environments import find_environment_id
from quarterdeck.wire.errors import ErrorCode


def reach(connection: Connection, caller: Caller, reference: str) -> str:
    """The id of the environment named by an id or `global`.

    Raises:
        ApiError: NOT_FOUND when there is none, or it is somebody else's.
    """
    found = find_environment_id(connection, caller.organization_id, caller.user_id, reference)
    if found is None:
        raise ApiError(ErrorCode.NOT_FOUND, "No environment has this id.")
    return found


def reach_layers(connection: Connection, caller: Caller, reference: str) -> list[Layer]:
    """The same with what lies below it; the last layer is the environment itself."""
    environment_id = reach(connection, caller, reference)
    return layers_of(connection, caller.organization_id, environment_id)


def no_part(what: str) -> ApiError:
    """The refusal of an id that no part of the environment has."""
    return ApiError(ErrorCode.NOT_FOUND, f"The environment has no {what} of this id.")
