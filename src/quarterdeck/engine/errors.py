"""Errors between the service and an engine, the same on both ends of the link.

EngineError                  code, message, details: the parts of the contract's Error object
+-- EngineRefusedError       the engine heard the call and refused it; also raised inside the engine
|   +-- WrongSecretError     `open` with another secret; the engine closes the link
|   +-- JournalError         the journal cannot be written now (a full disk); nothing was stored
+-- EngineGoneError          the link closed or broke: whether the call was carried out is not known
+-- EngineProtocolError      the other side sent something that is not a message of this protocol
"""

from quarterdeck.wire.errors import ErrorCode


class EngineError(Exception):
    """Base of the tree. `code` is one of the contract's `ErrorCode`s, or text from a newer engine."""

    def __init__(self, code: str, message: str, details: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


class EngineRefusedError(EngineError):
    """The call was refused; the message is for a person."""

    @classmethod
    def not_found(cls, message: str) -> "EngineRefusedError":
        return cls(ErrorCode.NOT_FOUND, message)

    @classmethod
    def conflict(cls, message: str) -> "EngineRefusedError":
        return cls(ErrorCode.CONFLICT, message)

    @classmethod
    def invalid(cls, message: str, details: str | None = None) -> "EngineRefusedError":
        return cls(ErrorCode.INVALID_REQUEST, message, details)


class WrongSecretError(EngineRefusedError):
    """The link was not opened with this engine's secret."""

    def __init__(self, message: str = "The engine does not know this secret.") -> None:
        super().__init__(ErrorCode.UNAUTHORIZED, message)


class JournalError(EngineRefusedError):
    """The journal cannot be written; the request had no effect and can be repeated."""

    def __init__(self, reason: str) -> None:
        message = (
            f"The workspace cannot write to its disk: {reason}. Free some space or make it writable, "
            "then try again."
        )
        super().__init__(ErrorCode.INTERNAL_ERROR, message, reason)


class EngineGoneError(EngineError):
    """The engine closed the link or cannot be reached."""

    def __init__(self, message: str = "The engine closed the connection. Try again.") -> None:
        super().__init__(ErrorCode.ENGINE_UNREACHABLE, message)


class EngineProtocolError(EngineError):
    """A line is not a message of this protocol; the link is closed after it."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.ENGINE_UNREACHABLE, message)
