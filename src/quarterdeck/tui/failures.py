"""What the cockpit does not expect: told in a sentence, and written to a file with its trace."""

import traceback
from datetime import UTC, datetime
from pathlib import Path

FILE = "cockpit.log"
LARGEST = 1_000_000
"""Bytes; a larger file is begun anew, the old one kept beside it."""


class FailureLog:
    """Appends failures to a file in the client's directory, readable by its owner only."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE

    def write(self, error: BaseException) -> bool:
        """Keeps an error with its trace; False when the disk does not take it."""
        trace = "".join(traceback.format_exception(error))
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.path.exists() and self.path.stat().st_size > LARGEST:
                self.path.replace(self.path.with_suffix(".old.log"))
            self.path.touch(mode=0o600)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{datetime.now(UTC).isoformat(timespec='seconds')}\n{trace}\n")
        except OSError:
            return False
        return True

    def sentence(self, error: BaseException) -> str:
        """Writes an error down, and says what a person should know of it."""
        cause = root_of(error)
        said = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
        where = f" The trace is in {self.path}." if self.write(error) else ""
        return f"{said}.{where}"


def root_of(error: BaseException) -> BaseException:
    """The first error inside groups and wrappers."""
    while True:
        match error:
            case BaseExceptionGroup(exceptions=(first, *_)):
                error = first
            case BaseException(__cause__=BaseException() as cause):
                error = cause
            case _:
                return error
