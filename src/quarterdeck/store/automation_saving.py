"""Saving what a form holds; refusals speak of the form's fields."""

from typing import TYPE_CHECKING

from quarterdeck.client.errors import ApiError, InvalidRequest
from quarterdeck.store.automation_draft import AutomationDraft, change_body, field_of, new_body
from quarterdeck.wire.automations import Automation

if TYPE_CHECKING:
    from quarterdeck.store.automation_commands import AutomationCommands

_PARTS = "; "


async def save_draft(
    commands: "AutomationCommands", draft: AutomationDraft, record: Automation | None
) -> Automation:
    """Makes an automation, or changes `record` to what the draft says.

    Raises:
        InvalidRequest: a field is wrong; `details` names it as the form does.
        ClientError: refused or unreachable.
    """
    try:
        if record is None:
            return await commands.create(new_body(draft))
        body = change_body(draft, record)
        return record if body is None else await commands.change(record.id, body)
    except InvalidRequest as error:
        raise in_the_form(error) from error
    except ValueError as error:
        raise InvalidRequest(str(error), status=400, details="events") from error


def in_the_form(error: ApiError) -> ApiError:
    """A refusal whose details name the form's fields in the place of the request's."""
    parts = (error.details or "").split(_PARTS)
    error.details = _PARTS.join(_placed(part) for part in parts)
    return error


def _placed(part: str) -> str:
    path, colon, words = part.partition(":")
    return f"{field_of(path)}{colon}{words}"
