"""Terminals of a replica, and commands that are run without one."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StrictInt, TypeAdapter

from quarterdeck.wire.base import (
    INTEGRAL,
    Body,
    CamelBody,
    CamelRecord,
    Id,
    Record,
    Switch,
    Timestamp,
)

MAX_SESSIONS = 8
MAX_INPUT_CHARACTERS = 65_536
MIN_COLS, MAX_COLS = 2, 500
MIN_ROWS, MAX_ROWS = 1, 200
REPLAY_BYTES = 1 << 20
"""At least this many bytes of output are retained for a replay."""

Cols = Annotated[StrictInt, Field(ge=MIN_COLS, le=MAX_COLS), INTEGRAL]
Rows = Annotated[StrictInt, Field(ge=MIN_ROWS, le=MAX_ROWS), INTEGRAL]


class TerminalSession(CamelRecord):
    """One terminal inside the sandbox."""

    id: Id
    """Unique id."""
    title: str
    """Title to show."""
    created_at: Timestamp
    """When it was created."""
    exited: bool = False
    """Whether its shell has ended."""
    exit_code: int | None = None
    """Exit code of the shell; null while it runs."""
    ended: bool = False
    """As `exited`. An ended session stays listed for ten minutes, unless it is closed before."""
    program: str | None = None
    """Program that runs in it besides the shell; null for none (own field)."""


class TerminalList(Record):
    """Answer of listing terminal sessions."""

    sessions: list[TerminalSession]
    """Sessions."""


class TerminalAnswer(Record):
    """Answer of opening a terminal session."""

    session: TerminalSession
    """The session."""


class CreateTerminal(Body):
    """Body of opening a terminal: its size in cells."""

    cols: Cols
    """Width in characters."""
    rows: Rows
    """Height in lines."""


class TerminalInput(Body):
    """Keys for a terminal, numbered so that a repeat is never typed twice."""

    takes_nul = True  # Ctrl+Space

    data: Annotated[str, Field(max_length=MAX_INPUT_CHARACTERS)]
    """Text to type."""
    generation: Annotated[StrictInt, Field(ge=0), INTEGRAL]
    """Number of the client's connection; a higher one starts the sequence again at 0."""
    sequence: Annotated[StrictInt, Field(ge=0), INTEGRAL]
    """Number of this input within the generation, from 0."""


class ResizeTerminal(Body):
    """Body of resizing a terminal."""

    cols: Cols
    """Width in characters."""
    rows: Rows
    """Height in lines."""


class TerminalReplay(CamelBody):
    """The retained tail, base64. `offset` is the byte offset after it."""

    type: Literal["replay"] = "replay"
    """Always `replay`."""
    data: str
    """Retained output in base64."""
    offset: int
    """Byte offset at the end of `data`."""
    cols: int
    """Width in characters."""
    rows: int
    """Height in lines."""
    reset: bool = True
    """Whether to clear the screen first."""


class TerminalOutput(CamelBody):
    """New output, base64."""

    type: Literal["output"] = "output"
    """Always `output`."""
    data: str
    """New output in base64."""


class TerminalResized(CamelBody):
    """The terminal's size changed."""

    type: Literal["resize"] = "resize"
    """Always `resize`."""
    cols: int
    """Width in characters."""
    rows: int
    """Height in lines."""


class TerminalExit(CamelBody):
    """The shell ended; the stream closes after this."""

    type: Literal["exit"] = "exit"
    """Always `exit`."""
    exit_code: int | None = None
    """Exit code of the shell."""


class TerminalError(CamelBody):
    """The stream cannot go on."""

    type: Literal["error"] = "error"
    """Always `error`."""
    message: str
    """Message for a person."""


TerminalEvent = Annotated[
    TerminalReplay | TerminalOutput | TerminalResized | TerminalExit | TerminalError,
    Field(discriminator="type"),
]
terminal_event: TypeAdapter[TerminalEvent] = TypeAdapter(
    TerminalEvent, config=ConfigDict(defer_build=True)
)
"""Decodes one message of the terminal stream."""
_base64: TypeAdapter[bytes] = TypeAdapter(
    bytes, config=ConfigDict(val_json_bytes="base64", defer_build=True)
)


def terminal_bytes(data: str) -> bytes:
    """Decode a message's `data`, ten times faster than the standard library.

    Raises:
        ValidationError: it is not base64.
    """
    return _base64.validate_strings(data)


EXEC_OUTPUT_LIMIT = 65_536
"""Bytes of combined output that are kept: the last ones."""

DEFAULT_TIMEOUT_SECONDS = 30


class ExecRequest(Body):
    """A shell command and how many seconds it may take."""

    command: str
    """Shell command; it runs in the workspace's root directory, unless `in_repository` is set."""
    timeout_seconds: Annotated[StrictInt, Field(ge=1, le=50), INTEGRAL] = DEFAULT_TIMEOUT_SECONDS
    """Seconds until it is stopped."""
    in_repository: Switch | None = None
    """Whether it starts where terminals do: in the repository, if there is exactly one."""


class ExecResponse(Record):
    """Result of a command. `exit_code` is null when the command timed out."""

    output: str
    """Standard output and error together: the last 65,536 bytes."""
    exit_code: int | None
    """Exit code; null when it timed out."""
    timed_out: bool
    """Whether it timed out and was stopped."""
    truncated: bool
    """Whether the beginning of the output was left out."""
