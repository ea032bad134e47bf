"""What can go wrong in a call.

    ClientError
    ├── ApiError                 the service answered with an error (status, code, details)
    │   ├── InvalidRequest       400
    │   ├── Unauthorized         401
    │   ├── Forbidden            403
    │   ├── NotFound             404
    │   ├── Conflict             409
    │   │   ├── NotActive        409, code WORKSPACE_NOT_ACTIVE
    │   │   └── InErrorState     409, code WORKSPACE_ERROR_STATE
    │   ├── PayloadTooLarge      413
    │   ├── RateLimited          429 (retry_after)
    │   └── ServerError          5xx
    │       └── Unavailable      502, 503, 504
    ├── BadKey                   the key cannot even be sent
    └── LinkError                no usable answer came
        ├── Unreachable          nothing listens, or the line broke
        │   └── NotConnected     nothing listens: the request was surely not carried out
        ├── TimedOut             no answer in time
        └── ProtocolError        the answer is not what the contract says

Every error has a short `title`, a `message` for a person and a `next_step`; `str()` is the message.
Nothing of the HTTP library leaves this package.
"""

from typing import ClassVar


class ClientError(Exception):
    """A call failed. `next_step` says what the person can do about it."""

    title: ClassVar[str] = "The call failed"
    default_step: ClassVar[str] = "Try again."

    def __init__(self, message: str, *, next_step: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step or self.default_step


class ApiError(ClientError):
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
        next_step: str | None = None,
    ) -> None:
        super().__init__(message, next_step=next_step)
        self.status = status
        self.code = code
        self.details = details
        self.retry_after = retry_after
        """Seconds that the service asks to wait before another try."""


class InvalidRequest(ApiError):
    """400: something in the request is missing or not allowed; `details` names it."""

    title: ClassVar[str] = "Not accepted"
    default_step: ClassVar[str] = "Correct what is named and try again."


class Unauthorized(ApiError):
    """401: no key, or not one the service knows."""

    title: ClassVar[str] = "Key refused"
    default_step: ClassVar[str] = (
        "Check the API key of this connection (QD_API_KEY or the profile)."
    )


class Forbidden(ApiError):
    """403: the key does not allow this."""

    title: ClassVar[str] = "Not allowed"
    default_step: ClassVar[str] = "Use a key that is allowed to do this."


class NotFound(ApiError):
    """404: it does not exist, or belongs to another organization."""

    title: ClassVar[str] = "Not found"
    default_step: ClassVar[str] = "It may have been deleted: look at the list again."


class Conflict(ApiError):
    """409: it exists already, or its state does not allow this."""

    title: ClassVar[str] = "Conflict"
    default_step: ClassVar[str] = "Look at its present state and try again."


class NotActive(Conflict):
    """409 `WORKSPACE_NOT_ACTIVE`: the replica must be active for this."""

    title: ClassVar[str] = "The replica is not active"
    default_step: ClassVar[str] = "Wake the replica and try again."


class InErrorState(Conflict):
    """409 `WORKSPACE_ERROR_STATE`: the replica failed and must be woken first."""

    title: ClassVar[str] = "The replica failed"
    default_step: ClassVar[str] = "Look at its error, mend the cause, then wake it to try again."


class PayloadTooLarge(ApiError):
    """413: the request is larger than the service takes."""

    title: ClassVar[str] = "Too large"
    default_step: ClassVar[str] = "Send less at once."


class RateLimited(ApiError):
    """429: too many requests, or too many of something open."""

    title: ClassVar[str] = "Limit reached"
    default_step: ClassVar[str] = "Wait a little, or close what is not needed."


class ServerError(ApiError):
    """5xx: the service failed."""

    title: ClassVar[str] = "The service failed"
    default_step: ClassVar[str] = "Try again; when it happens again, look at the service's log."


class Unavailable(ServerError):
    """502, 503, 504: the engine or the service cannot be reached at this moment."""

    title: ClassVar[str] = "Not available now"
    default_step: ClassVar[str] = "Try again in a moment."


class BadKey(ClientError):
    """The key holds characters that cannot be sent."""

    title: ClassVar[str] = "Not a key"
    default_step: ClassVar[str] = (
        "Check the API key of this connection (QD_API_KEY or the profile)."
    )


class LinkError(ClientError):
    """No usable answer came, so it is not known whether the request was carried out."""

    title: ClassVar[str] = "No answer"


class Unreachable(LinkError):
    """Nothing listens at the address, or the line broke."""

    title: ClassVar[str] = "Service unreachable"
    default_step: ClassVar[str] = "Check the address and that the service runs (qd status)."


class NotConnected(Unreachable):
    """Nothing listens at the address: the request never left and may be made again."""


class TimedOut(LinkError):
    """No answer came in time."""

    title: ClassVar[str] = "Timed out"
    default_step: ClassVar[str] = "Check the line to the service and try again."


class ProtocolError(LinkError):
    """What came is not what the contract says."""

    title: ClassVar[str] = "Answer not understood"
    default_step: ClassVar[str] = "Check that the address is a service of this interface."
