"""Errors of API calls.

    ClientError
    ├── ResponseError                the service answered with an error (status, code, details)
    │   ├── InvalidRequestError      400
    │   ├── UnauthorizedError        401
    │   ├── ForbiddenError           403
    │   ├── NotFoundError            404
    │   ├── ConflictError            409
    │   │   ├── NotActiveError       409, code WORKSPACE_NOT_ACTIVE
    │   │   └── ReplicaFailedError   409, code WORKSPACE_ERROR_STATE
    │   ├── PreconditionFailedError  412
    │   ├── PayloadTooLargeError     413
    │   ├── RateLimitedError         429 (retry_after)
    │   └── ServerError              5xx
    │       └── UnavailableError     502, 503, 504
    ├── InvalidKeyError              the key cannot even be sent
    ├── NoKeyError                   there is no key to send
    └── LinkError                    no usable answer came
        ├── UnreachableError         nothing listens, or the connection broke
        │   └── NotConnectedError    nothing listens: the request was certainly not carried out
        │       └── StoppedError     the person stopped the service
        ├── RequestTimeoutError      no answer in time
        └── ProtocolError            the answer does not match the contract

Every error has a short `title`, a `message` for a person and a `next_step`; `str()` is the message.
Nothing of the HTTP library leaves this package.
"""

from collections.abc import Sequence
from typing import ClassVar


class ClientError(Exception):
    """A call failed. `next_step` says what the person can do about it."""

    title: ClassVar[str] = "The call failed"
    default_step: ClassVar[str] = "Try again."

    def __init__(self, message: str, *, next_step: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step or self.default_step


class ResponseError(ClientError):
    """The service refused. `status` is HTTP's, `code` and `details` are the Error object's."""

    title: ClassVar[str] = "The service refused"

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str | None = None,
        details: str | None = None,
        retry_after: float | None = None,
        conflicts: Sequence[str] = (),
        next_step: str | None = None,
    ) -> None:
        super().__init__(message, next_step=next_step)
        self.conflicts = list(conflicts)
        """Files that two sides have changed, repository-relative."""
        self.status = status
        self.code = code
        self.details = details
        self.retry_after = retry_after
        """Seconds that the service asks to wait before another try."""


class InvalidRequestError(ResponseError):
    """400: a part of the request is missing or not allowed; `details` names it."""

    title: ClassVar[str] = "Not accepted"
    default_step: ClassVar[str] = "Correct it and retry."


class UnauthorizedError(ResponseError):
    """401: no key, or not one the service knows."""

    title: ClassVar[str] = "Invalid API key"
    default_step: ClassVar[str] = (
        "Check the key: QD_API_KEY, or the profile's. qd auth login gets one."
    )


class ForbiddenError(ResponseError):
    """403: the key does not allow this."""

    title: ClassVar[str] = "Not allowed"
    default_step: ClassVar[str] = "Use a key that is allowed to do this."


class NotFoundError(ResponseError):
    """404: it does not exist, or belongs to another organization."""

    title: ClassVar[str] = "Not found"
    default_step: ClassVar[str] = "It may have been deleted; refresh the list."


class ConflictError(ResponseError):
    """409: it already exists, or its state does not allow this."""

    title: ClassVar[str] = "Conflict"
    default_step: ClassVar[str] = "Check its current state, then retry."


class NotActiveError(ConflictError):
    """409 `WORKSPACE_NOT_ACTIVE`: the replica must be active for this."""

    title: ClassVar[str] = "The replica is not active"
    default_step: ClassVar[str] = "Try again when it is active."


class ReplicaFailedError(ConflictError):
    """409 `WORKSPACE_ERROR_STATE`: the replica failed and must be woken first."""

    title: ClassVar[str] = "The replica failed"
    default_step: ClassVar[str] = "Look at its error and fix the cause first."


class PreconditionFailedError(ResponseError):
    """412: somebody else has changed it since it was read."""

    title: ClassVar[str] = "Changed meanwhile"
    default_step: ClassVar[str] = "Read it again, then repeat the change."


class PayloadTooLargeError(ResponseError):
    """413: the request is larger than the service accepts."""

    title: ClassVar[str] = "Too large"
    default_step: ClassVar[str] = "Send less at once."


class RateLimitedError(ResponseError):
    """429: too many requests, or too many open resources."""

    title: ClassVar[str] = "Limit reached"
    default_step: ClassVar[str] = "Wait, or close what you no longer need."


class ServerError(ResponseError):
    """5xx: the service failed."""

    title: ClassVar[str] = "The service failed"
    default_step: ClassVar[str] = "Try again; when it happens again, look at the service's log."


class UnavailableError(ServerError):
    """502, 503, 504: the engine or the service cannot be reached now."""

    title: ClassVar[str] = "Not available now"
    default_step: ClassVar[str] = "Retry in a few seconds."


class InvalidKeyError(ClientError):
    """The key contains characters that cannot be sent."""

    title: ClassVar[str] = "Not a key"
    default_step: ClassVar[str] = (
        "Check the key: QD_API_KEY, or the profile's. qd auth login gets one."
    )


class NoKeyError(ClientError):
    """There is no key for the service, or the program that prints it failed."""

    title: ClassVar[str] = "No API key"
    default_step: ClassVar[str] = "Log in with: qd auth login."


class LinkError(ClientError):
    """No usable answer came, so it is not known whether the request was carried out."""

    title: ClassVar[str] = "No answer"


class UnreachableError(LinkError):
    """Nothing listens at the address, or the connection broke."""

    title: ClassVar[str] = "Service unreachable"
    default_step: ClassVar[str] = "Check the address and that the service runs (qd status)."


class NotConnectedError(UnreachableError):
    """Nothing listens at the address: the request never left and may be made again."""


class StoppedError(NotConnectedError):
    """The person stopped the embedded service, and has not started it again."""

    title: ClassVar[str] = "Service stopped"
    default_step: ClassVar[str] = "Start it with: qd serve."


class RequestTimeoutError(LinkError):
    """No answer came in time."""

    title: ClassVar[str] = "Timed out"
    default_step: ClassVar[str] = "Check the line to the service and try again."


class ProtocolError(LinkError):
    """The answer does not match the contract."""

    title: ClassVar[str] = "Answer not understood"
    default_step: ClassVar[str] = "Check that the address is a service of this interface."
