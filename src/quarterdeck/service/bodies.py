"""The size limit of request bodies (INTERFACE 10)."""

from fastapi import HTTPException
from starlette.types import Message, Receive

from quarterdeck.service.errors import ApiError
from quarterdeck.wire.errors import ErrorCode

BODY_LIMIT = 8 << 20


def check_length(declared: str | None) -> None:
    """Refuses a body that says it is too long, before it is read.

    Raises:
        ApiError: PAYLOAD_TOO_LARGE.
    """
    if declared is not None and declared.isdecimal() and int(declared) > BODY_LIMIT:
        raise ApiError(
            ErrorCode.PAYLOAD_TOO_LARGE,
            "The request's body is too large.",
            f"body: at most {BODY_LIMIT} bytes",
        )


def limited(receive: Receive) -> Receive:
    """Receives a body without a declared length, no more of it than is allowed."""
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > BODY_LIMIT:
            # The framework lets this one through while it reads a body; others become a 400.
            raise HTTPException(413)
        return message

    return counted
