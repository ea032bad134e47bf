"""What is typed to begin a run by hand, made into what the service is asked for."""

import json
from dataclasses import dataclass

from quarterdeck.client.errors import ApiError, ClientError, LinkError, PayloadTooLarge
from quarterdeck.wire.automations import PAYLOAD_BYTES, PullRequestRef, TriggerAutomation

PAYLOAD, PULL_REQUEST, FORM = "payload", "pr", "form"


@dataclass(frozen=True)
class Wrong:
    """What is wrong, and with which field."""

    field: str
    text: str


def trigger_of(payload: str, pull_request: str) -> TriggerAutomation | Wrong:
    """The body of the request, or what is wrong with what was typed."""
    body = TriggerAutomation()
    if payload.strip():
        if len(payload.encode()) > PAYLOAD_BYTES:
            return Wrong(PAYLOAD, f"At most {PAYLOAD_BYTES >> 10} KB are taken.")
        try:
            body.payload = json.loads(payload)
        except RecursionError:
            return Wrong(PAYLOAD, "It lies too deep.")
        except ValueError as error:
            return Wrong(PAYLOAD, f'It is no JSON: {error}. A text stands in quotes: "like this".')
    if pull_request.strip():
        repository, _, number = pull_request.strip().rpartition("#")
        if not repository or not (number.isascii() and number.isdecimal()) or int(number) < 1:
            return Wrong(PULL_REQUEST, "Write REPOSITORY#NUMBER, such as shop#12.")
        body.pr = PullRequestRef(repository=repository, number=int(number))
    return body


def refused(error: ClientError) -> Wrong:
    """A refusal beside the field that it speaks of."""
    details = (error.details or "") if isinstance(error, ApiError) else ""
    about, _, more = details.partition(":")
    told = " ".join(filter(None, (str(error), more.strip())))
    if isinstance(error, PayloadTooLarge) or about.startswith("payload"):
        return Wrong(PAYLOAD, told)
    if about.startswith("pr"):
        return Wrong(PULL_REQUEST, told)
    if isinstance(error, LinkError):
        return Wrong(FORM, f"{error} It may have begun: look at the runs first.")
    return Wrong(FORM, f"{told} {error.next_step}")
