"""Running one command in the workspace root (specification, operation 1)."""

from typing import Annotated

from pydantic import Field

from quarterdeck.wire.base import Body, Record, Whole

EXEC_OUTPUT_LIMIT = 65_536
"""Bytes of combined output that are kept: the last ones."""

DEFAULT_TIMEOUT_SECONDS = 30


class ExecRequest(Body):
    """A shell command and how many seconds it may take."""

    command: str
    timeout_seconds: Annotated[Whole, Field(ge=1, le=50)] = DEFAULT_TIMEOUT_SECONDS


class ExecResponse(Record):
    """What came out. `exit_code` is null when the command timed out."""

    output: str
    exit_code: int | None
    timed_out: bool
    truncated: bool
