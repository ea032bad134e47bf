"""Output to a terminal that may go away.

Textual writes from a thread behind a queue of thirty pieces. Were the thread to end with the first
piece that a vanished terminal refuses, the next ones would fill the queue, and the program would
wait at it for ever instead of ending.
"""

from typing import IO, Any, cast

from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver


class Outlet:
    """A terminal's output. Once it refuses a piece there is nobody to show anything to."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self.lost: OSError | None = None
        """Why nothing is written any more; `hangup` ends the program for the same reason."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> int:
        """Writes as far as there is a terminal."""
        if self.lost is None:
            try:
                return self._file.write(text)
            except OSError as error:
                self.lost = error
        return len(text)

    def flush(self) -> None:
        """As `write`."""
        if self.lost is None:
            try:
                self._file.flush()
            except OSError as error:
                self.lost = error


class OutletDriver(LinuxDriver):
    """Textual's driver over an `Outlet`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._file = cast("Any", Outlet(cast("IO[str]", self._file)))


def outlet_driver(found: type[Driver]) -> type[Driver]:
    """The driver to take where Textual would take `found`."""
    return OutletDriver if found is LinuxDriver else found
