"""The Error object and its machine-readable codes (specification, Errors; docs/interface.md 2)."""

from enum import StrEnum

from quarterdeck.wire.base import Record


class ErrorCode(StrEnum):
    """Values of `code`. Clients treat an unknown one as text."""

    INVALID_REQUEST = "INVALID_REQUEST"
    ORG_HEADER_REQUIRED = "ORG_HEADER_REQUIRED"
    UNAUTHORIZED = "UNAUTHORIZED"
    JWT_REQUIRED = "JWT_REQUIRED"
    USER_REQUIRED = "USER_REQUIRED"
    API_KEY_REQUIRED = "API_KEY_REQUIRED"
    FORBIDDEN = "FORBIDDEN"
    NOT_FOUND = "NOT_FOUND"
    TERMINAL_UNSUPPORTED = "TERMINAL_UNSUPPORTED"
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
    CONFLICT = "CONFLICT"
    UNCOMMITTED_CHANGES = "UNCOMMITTED_CHANGES"
    """Uncommitted changes are in the way of an update, which can stash them."""
    WORKSPACE_NOT_ACTIVE = "WORKSPACE_NOT_ACTIVE"
    WORKSPACE_ERROR_STATE = "WORKSPACE_ERROR_STATE"
    PRECONDITION_FAILED = "PRECONDITION_FAILED"
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE"
    TERMINAL_LIMIT_REACHED = "TERMINAL_LIMIT_REACHED"
    WORKSPACE_LIMIT_REACHED = "WORKSPACE_LIMIT_REACHED"
    QUOTA_REACHED = "QUOTA_REACHED"
    """An owner has as many records of a kind as are allowed (own code)."""
    RATE_LIMITED = "RATE_LIMITED"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    ENGINE_UNREACHABLE = "ENGINE_UNREACHABLE"
    ENGINE_STARTING = "ENGINE_STARTING"
    SERVICE_UNAVAILABLE = "SERVICE_UNAVAILABLE"
    """The service cannot use its database now, or is stopping; comes with `Retry-After`."""


STATUS_OF: dict[ErrorCode, int] = {
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.ORG_HEADER_REQUIRED: 400,
    ErrorCode.UNAUTHORIZED: 401,
    ErrorCode.JWT_REQUIRED: 401,
    ErrorCode.USER_REQUIRED: 401,
    ErrorCode.API_KEY_REQUIRED: 403,
    ErrorCode.FORBIDDEN: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.TERMINAL_UNSUPPORTED: 404,
    ErrorCode.METHOD_NOT_ALLOWED: 405,
    ErrorCode.CONFLICT: 409,
    ErrorCode.UNCOMMITTED_CHANGES: 409,
    ErrorCode.WORKSPACE_NOT_ACTIVE: 409,
    ErrorCode.WORKSPACE_ERROR_STATE: 409,
    ErrorCode.PRECONDITION_FAILED: 412,
    ErrorCode.PAYLOAD_TOO_LARGE: 413,
    ErrorCode.TERMINAL_LIMIT_REACHED: 429,
    ErrorCode.WORKSPACE_LIMIT_REACHED: 429,
    ErrorCode.QUOTA_REACHED: 429,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.INTERNAL_ERROR: 500,
    ErrorCode.ENGINE_UNREACHABLE: 502,
    ErrorCode.ENGINE_STARTING: 503,
    ErrorCode.SERVICE_UNAVAILABLE: 503,
}
"""The HTTP status that goes with each code."""


class ErrorObject(Record):
    """The body of every error response."""

    error: str
    """Message for a person."""
    details: str | None = None
    """The field or state that was wrong, and the next step."""
    code: str | None = None
    """Reason, for programs."""
    conflicts: list[str] | None = None
    """Files that two sides have changed, repository-relative (own field)."""
