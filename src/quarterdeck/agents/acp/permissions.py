"""Permission requests as people are asked them."""

from pydantic import ValidationError

from quarterdeck.agents.acp.shapes import PermissionRequest
from quarterdeck.agents.session.desk import Asked


def read_request(params: object) -> Asked | None:
    """What a request asks; None for one that no one could answer."""
    try:
        request = PermissionRequest.model_validate(params)
    except ValidationError:
        return None
    told = {"toolCall": request.tool_call, "options": request.raw_options}
    return Asked(told, sorted({option.option_id for option in request.options}))
