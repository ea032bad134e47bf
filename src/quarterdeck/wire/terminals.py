"""Interactive terminal sessions and their output stream (INTERFACE 6)."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from quarterdeck.wire.base import Body, CamelBody, CamelRecord, Id, Record, Timestamp, Whole

MAX_SESSIONS = 8
MAX_INPUT_CHARACTERS = 65_536
MIN_COLS, MAX_COLS = 2, 500
MIN_ROWS, MAX_ROWS = 1, 200
REPLAY_BYTES = 1 << 20
"""At least this many bytes of output are retained for a replay."""

Cols = Annotated[Whole, Field(ge=MIN_COLS, le=MAX_COLS)]
Rows = Annotated[Whole, Field(ge=MIN_ROWS, le=MAX_ROWS)]


class TerminalSession(CamelRecord):
    """One terminal inside the sandbox."""

    id: Id
    title: str
    created_at: Timestamp
    exited: bool = False
    exit_code: int | None = None


class TerminalList(Record):
    """Answer of listing terminal sessions."""

    sessions: list[TerminalSession]


class TerminalAnswer(Record):
    """Answer of opening a terminal session."""

    session: TerminalSession


class CreateTerminal(Body):
    """Body of opening a terminal: its size in cells."""

    cols: Cols
    rows: Rows


class TerminalInput(Body):
    """Keys for a terminal, numbered so that a repeat is never typed twice."""

    takes_nul = True  # Ctrl+Space

    data: Annotated[str, Field(max_length=MAX_INPUT_CHARACTERS)]
    generation: Annotated[Whole, Field(ge=0)]
    sequence: Annotated[Whole, Field(ge=0)]


class ResizeTerminal(Body):
    """Body of resizing a terminal."""

    cols: Cols
    rows: Rows


class TerminalReplay(CamelBody):
    """The retained tail, base64. `offset` is the byte offset after it."""

    type: Literal["replay"] = "replay"
    data: str
    offset: int
    cols: int
    rows: int
    reset: bool = True


class TerminalOutput(CamelBody):
    """New output, base64."""

    type: Literal["output"] = "output"
    data: str


class TerminalResized(CamelBody):
    """The terminal's size changed."""

    type: Literal["resize"] = "resize"
    cols: int
    rows: int


class TerminalExit(CamelBody):
    """The shell ended; the stream closes after this."""

    type: Literal["exit"] = "exit"
    exit_code: int | None = None


class TerminalError(CamelBody):
    """The stream cannot go on."""

    type: Literal["error"] = "error"
    message: str


TerminalEvent = Annotated[
    TerminalReplay | TerminalOutput | TerminalResized | TerminalExit | TerminalError,
    Field(discriminator="type"),
]
terminal_event: TypeAdapter[TerminalEvent] = TypeAdapter(TerminalEvent)
"""Decodes one message of the terminal stream."""
_base64: TypeAdapter[bytes] = TypeAdapter(bytes, config=ConfigDict(val_json_bytes="base64"))


def terminal_bytes(data: str) -> bytes:
    """The bytes that a message's `data` stands for; in a tenth of the standard library's time.

    Raises:
        ValidationError: it is not base64.
    """
    return _base64.validate_strings(data)
