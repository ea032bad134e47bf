"""What is wrong with a wish for a replica, and beside which field it is said."""

from dataclasses import dataclass

from quarterdeck.client.errors import (
    ApiError,
    ClientError,
    Conflict,
    InvalidRequest,
    LinkError,
    NotConnected,
    NotFound,
    PayloadTooLarge,
)
from quarterdeck.store.creation import Wish
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.text import one_line

FORM = "form"
"""The place for what is about no single field."""

LONGEST_NAME = 200


@dataclass(frozen=True)
class FieldError:
    """What is wrong and beside which field it is shown."""

    field: str
    text: str


def check_name(name: str) -> FieldError | None:
    """What is wrong with a name, before the service is asked."""
    if any(character.isspace() for character in name):
        return FieldError("name", "A name has no white space: use - instead.")
    if one_line(name) != name:
        return FieldError("name", "A name has no control characters.")
    if len(name) > LONGEST_NAME:
        return FieldError("name", f"A name has at most {LONGEST_NAME} characters.")
    return None


def check_message(message: str, images: int) -> FieldError | None:
    """What is wrong with the first message, before the service is asked."""
    if images and not message:
        return FieldError("message", "Images need a message: say what to do with them.")
    return None


def place_error(error: ClientError, wish: Wish) -> FieldError:
    """Puts a refusal beside the field that it speaks of."""
    details = error.details or "" if isinstance(error, ApiError) else ""
    about, _, more = details.partition(":")
    text = one_line(str(error))
    match error:
        case Conflict():
            return FieldError("name", f"{text} Choose another one, or none.")
        case NotFound():
            return FieldError("environment", f"{text} It may have been deleted: choose another.")
        case InvalidRequest() | PayloadTooLarge() if about.startswith("images"):
            return FieldError("message", f"{text} {one_line(more)}".strip())
        case InvalidRequest() if about == "url" or (about == "" and wish.repository_url):
            reason = one_line(more)
            return FieldError("repository", f"{text} {reason}".strip())
        case InvalidRequest() if about == "coding_agent":
            return FieldError("agent", text)
        case InvalidRequest() if about == "model":
            return FieldError("model", text)
        case InvalidRequest() if about == "name":
            return FieldError("name", text)
        case NotConnected():
            return FieldError(
                FORM, f"{text} " + keyed("Nothing typed is lost: {form.save} tries again.")
            )
        case LinkError():
            return FieldError(FORM, f"{text} It may have been made: look at the list first.")
        case _:
            return FieldError(FORM, f"{text} {one_line(error.next_step)}")
