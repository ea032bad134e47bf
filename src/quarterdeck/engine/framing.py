"""JSON-RPC 2.0 messages, one a line, on an asyncio byte stream; used by both ends of a link."""

import asyncio
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import from_json, to_json

from quarterdeck.engine.errors import EngineProtocolError, EngineRefusedError, WrongSecretError
from quarterdeck.wire.engine import LINE_LIMIT, EngineFault
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.json_size import VALUES_LIMIT, has_too_many_values, with_bounded_integers

REFUSED = -32000
UNAUTHORIZED = -32001
PARSE_ERROR = -32700

_READ_BYTES = 1 << 18

_TEXT_LIMIT = 4_000
"""Most characters of a refusal's texts that are kept."""


class Fault(BaseModel):
    """The error object of an answer."""

    code: int
    message: str
    data: EngineFault | None = None


class Message(BaseModel):
    """One line: a call has `id` and `method`, a notification no `id`, a reply no `method`."""

    model_config = ConfigDict(extra="ignore")

    jsonrpc: Literal["2.0"]
    id: int | str | None = None
    method: str | None = None
    params: dict[str, Any] | None = None
    result: Any = None
    error: Fault | None = None


class LineReader:
    """Splits a byte stream into lines of at most `limit` bytes, ignoring the stream's own limit."""

    def __init__(self, reader: asyncio.StreamReader, limit: int = LINE_LIMIT) -> None:
        self._reader = reader
        self._buffer = bytearray()
        self._scanned = 0
        self.limit = limit

    async def line(self) -> bytes | None:
        """Return the next line without its end, or None at the end of the stream.

        Raises:
            EngineProtocolError: a line is longer than the limit.
            OSError: the stream broke.
        """
        while (end := self._buffer.find(b"\n", self._scanned)) < 0:
            self._scanned = len(self._buffer)
            if self._scanned > self.limit:
                raise EngineProtocolError(f"A line is longer than {self.limit} bytes.")
            chunk = await self._reader.read(_READ_BYTES)
            if not chunk:
                return None
            self._buffer += chunk
        if end > self.limit:
            raise EngineProtocolError(f"A line is longer than {self.limit} bytes.")
        with memoryview(self._buffer) as whole:
            line = bytes(whole[:end])
        del self._buffer[: end + 1]
        self._scanned = 0
        return line


def decode(line: bytes) -> Message:
    """Read one line.

    Raises:
        EngineProtocolError: it is not a message, or one of too many values.
    """
    if has_too_many_values(line):
        raise EngineProtocolError(f"A line has more than {VALUES_LIMIT} values.")
    try:
        return Message.model_validate(from_json(with_bounded_integers(line)))
    except (ValueError, ValidationError) as error:
        raise EngineProtocolError("A line is not a JSON-RPC 2.0 message.") from error


def call_line(id: int, method: str, params: BaseModel | dict[str, Any] | None) -> bytes:
    """Return a call."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": method}
    if params is not None:
        message["params"] = params
    return to_json(message, by_alias=True) + b"\n"


def result_line(id: int | str | None, result: BaseModel | None) -> bytes:
    """Return the answer of a call that was carried out."""
    return to_json({"jsonrpc": "2.0", "id": id, "result": result}, by_alias=True) + b"\n"


def fault_line(id: int | str | None, error: EngineRefusedError, code: int = REFUSED) -> bytes:
    """Return the answer of a call that was refused."""
    if isinstance(error, WrongSecretError):
        code = UNAUTHORIZED
    data = EngineFault(code=error.code, details=error.details)
    fault = Fault(code=code, message=error.message, data=data)
    return to_json({"jsonrpc": "2.0", "id": id, "error": fault}, by_alias=True) + b"\n"


def notification_line(method: str, params: bytes) -> bytes:
    """Return a notification whose `params` are JSON already."""
    head = b'{"jsonrpc":"2.0","method":"' + method.encode() + b'","params":'
    return head + params + b"}\n"


def refusal_of(fault: Fault) -> EngineRefusedError:
    """Return the exception for an answer's error object."""
    message = fault.message[:_TEXT_LIMIT]
    if fault.code == UNAUTHORIZED:
        return WrongSecretError(message)
    if fault.data is None:
        return EngineRefusedError(ErrorCode.INTERNAL_ERROR, message)
    details = fault.data.details and fault.data.details[:_TEXT_LIMIT]
    return EngineRefusedError(fault.data.code, message, details)
