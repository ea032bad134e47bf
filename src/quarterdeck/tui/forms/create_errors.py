"""Errors of a request for a replica, and the fields that they belong to."""

from dataclasses import dataclass

from quarterdeck.client.errors import (
    ApiError,
    ClientError,
    ConflictError,
    InvalidRequestError,
    LinkError,
    NotConnectedError,
    NotFoundError,
    PayloadTooLargeError,
)
from quarterdeck.store.creation import CreationRequest
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions.sentences import keyed

FORM = "form"
"""The place of errors that concern no single field."""

LONGEST_NAME = 200


@dataclass(frozen=True)
class FieldError:
    """An error and the field that it is shown next to."""

    field: str
    text: str


def check_name(name: str) -> FieldError | None:
    """Return what is wrong with a name, before the service is asked."""
    if any(character.isspace() for character in name):
        return FieldError("name", "Names cannot contain spaces; use - instead.")
    if one_line(name) != name:
        return FieldError("name", "A name has no control characters.")
    if len(name) > LONGEST_NAME:
        return FieldError("name", f"A name has at most {LONGEST_NAME} characters.")
    return None


def check_message(message: str, images: int) -> FieldError | None:
    """Return what is wrong with the first message, before the service is asked."""
    if images and not message:
        return FieldError("message", "Images need a message: say what to do with them.")
    return None


def place_error(error: ClientError, wish: CreationRequest) -> FieldError:
    """Show a refusal next to the field that it names."""
    details = error.details or "" if isinstance(error, ApiError) else ""
    about, _, more = details.partition(":")
    text = one_line(str(error))
    match error:
        case ConflictError():
            return FieldError("name", f"{text} Choose another one, or leave it empty.")
        case NotFoundError():
            return FieldError("environment", f"{text} It may have been deleted: choose another.")
        case PayloadTooLargeError() if wish.uncommitted is not None and not wish.images:
            return FieldError("base", f"{text} {one_line(more)}".strip())
        case InvalidRequestError() | PayloadTooLargeError() if about.startswith("images"):
            return FieldError("message", f"{text} {one_line(more)}".strip())
        case InvalidRequestError() if about == "url" or (about == "" and wish.repository_url):
            reason = one_line(more)
            return FieldError("repository", f"{text} {reason}".strip())
        case InvalidRequestError() if about in ("config.base", "config.uncommitted"):
            return FieldError("base", f"{text} {one_line(more)}".strip())
        case InvalidRequestError() if about == "coding_agent":
            return FieldError("agent", text)
        case InvalidRequestError() if about == "model":
            return FieldError("model", text)
        case InvalidRequestError() if about == "name":
            return FieldError("name", text)
        case NotConnectedError():
            return FieldError(FORM, f"{text} " + keyed("Your input is kept; {form.save} to retry."))
        case LinkError():
            return FieldError(FORM, f"{text} It may already exist; check the list before retrying.")
        case _:
            return FieldError(FORM, f"{text} {one_line(error.next_step)}")
