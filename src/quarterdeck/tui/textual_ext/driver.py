"""Output to and keys from the terminal, and the version of Textual that this was tested with.

Textual writes from a thread with a queue of thirty pieces. Were the thread to end with the first
piece that a vanished terminal refuses, the next ones would fill the queue, and the program would
wait for it forever instead of ending.
"""

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from threading import Condition
from time import monotonic
from typing import IO, Any, Final, cast

import textual
from textual import events
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.app import App
from textual.driver import Driver
from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter
from textual.message import Message

from quarterdeck.tui.host_terminal import ANSWERS, BEGUN, TerminalAnswered

# pyright: reportPrivateUsage=false


QUESTION: Final = "\x1b[5n"
"""Asks a terminal whether it works."""
REPLY: Final = "\x1b[0n"
REPLY_SECONDS = 1.0
"""A reply that is still to come would be typed into the next program."""


class Outlet:
    """A terminal's output. Once it refuses a piece nothing more is written."""

    def __init__(self, file: IO[str], loop: asyncio.AbstractEventLoop) -> None:
        self._file = file
        self._loop = loop
        self.lost: OSError | None = None
        """Why nothing is written any more; `hangup` ends the program for the same reason."""
        self.queued = 0
        """Characters to be written since the start."""
        self._written = 0
        self._taken = 0
        self._tells = False
        self.on_taken: Callable[[], object] | None = None
        """Called in the event loop's thread when everything is taken, after `is_behind` was true."""

    def is_behind(self) -> bool:
        """Return whether the terminal has not taken everything; `on_taken` is called once it has."""
        self._tells = True  # before the comparison: the writer's thread may take the rest meanwhile
        if self._taken < self.queued:
            return True
        self._tells = False
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> int:
        """Write while there is a terminal."""
        self._written += len(text)
        if self.lost is None:
            try:
                return self._file.write(text)
            except OSError as error:
                self.lost = error
        return len(text)

    def flush(self) -> None:
        """Flush as `write` does."""
        if self.lost is None:
            try:
                self._file.flush()
            except OSError as error:
                self.lost = error
        self._taken = self._written
        if self._tells and self.on_taken is not None and self._taken >= self.queued:
            self._tells = False
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self.on_taken)


class TerminalReply(Message):
    """The terminal replied to `QUESTION`."""

    key = ""
    """The parser asks all that comes from a key sequence for its key."""


class OutletDriver(LinuxDriver):
    """Textual's driver over an `Outlet`; it keeps the terminal's replies from the app's messages."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.outlet = Outlet(cast("IO[str]", self._file), self._loop)
        self._file = cast("Any", self.outlet)
        self.on_reply: Callable[[float], object] | None = None
        """Called in the event loop's thread, with the time of the reply."""
        self._unanswered = 0
        self._asked_at = 0.0
        self._replied = Condition()

    def write(self, data: str) -> None:
        """Part of `Driver`."""
        self.outlet.queued += len(data)
        if asked := data.count(QUESTION):
            with self._replied:
                self._unanswered += asked
                self._asked_at = monotonic()
        super().write(data)

    def process_message(self, message: Message) -> None:
        """Part of `Driver`; called in the thread that reads."""
        if not isinstance(message, TerminalReply):
            super().process_message(message)
            return
        at = monotonic()
        with self._replied:
            self._unanswered = max(0, self._unanswered - 1)
            self._replied.notify_all()
        if self.on_reply is not None:
            self._loop.call_soon_threadsafe(self.on_reply, at)

    def stop_application_mode(self) -> None:
        """Part of `Driver`; first takes the replies that are still to come."""
        with self._replied:
            left = self._asked_at + REPLY_SECONDS - monotonic()
            if self.outlet.lost is None and left > 0:
                self._replied.wait_for(lambda: not self._unanswered, left)
            self._unanswered = 0
        super().stop_application_mode()


def outlet_driver(found: type[Driver]) -> type[Driver]:
    """Return the driver class to use where Textual would use `found`."""
    return OutletDriver if found is LinuxDriver else found


KNOWN_VERSION: Final = "8.2.8"


@cache
def is_known() -> bool:
    """Return whether this version is supported; with another, private parts are not used."""
    installed = Path(textual.__file__).parents[1] / f"textual-{KNOWN_VERSION}.dist-info"
    if installed.is_dir():
        return True
    # Installed in another way; the lookup adds 25 ms to a start, so only then.
    from importlib.metadata import version

    return version("textual") == KNOWN_VERSION


MOUSE_MODES = (1000, 1003, 1015, 1006)
"""The mouse modes that Textual requests: presses, movement, and two encodings."""


def take_mouse(app: App[Any], wanted: bool) -> None:
    """Make the terminal report the mouse from now on, or stop it."""
    driver = app._driver
    if not isinstance(driver, LinuxDriver) or not is_known():
        return
    had = driver._mouse
    # The driver disables and enables the mouse around suspensions, as this says.
    driver._mouse = wanted
    if had != wanted and not app.is_headless:
        driver.write("".join(f"\x1b[?{mode}{'h' if wanted else 'l'}" for mode in MOUSE_MODES))
        driver.flush()


def replace_filter(app: App[Any], name: str, instead: LineFilter) -> None:
    """Replace Textual's own line filter of a name by another one."""
    app._filters[:] = [
        line_filter for line_filter in app._filters if type(line_filter).__name__ != name
    ]
    app._filters.append(instead)


_PAIR = re.compile("\x1b([^\x1b\\[O\\]P_^])")
"""Escape and a character that starts no sequence of the terminal."""


HELD_SECONDS = 0.1
"""Time within which the rest of a report follows its beginning."""


class AltKeyParser(XTermParser):
    """Textual's parser, which also recognizes Alt with any character, and what the terminal answers.

    Over a slow connection Escape and the next key come in one read, just as Alt and a key do. Textual
    keeps the Escape for letters and digits only: of Escape and a colon, which is how a file is saved in
    vi, and of Alt and Enter, only the second half is left. Here each such pair is one key with `alt+`;
    the terminal pane types it as the two bytes it was, and a field ignores it unless it binds such a key.
    """

    _pasting = False
    _held = ""
    """The beginning of a report that the terminal has not sent in full yet."""
    _held_until = 0.0

    def feed(self, data: str) -> Iterable[Message]:
        """Yield the events of what was read."""
        if REPLY in data:
            # Taken out beforehand: it may come in the middle of a paste.
            yield from (TerminalReply() for _ in range(data.count(REPLY)))
            data = data.replace(REPLY, "")
            if not data:
                return  # no data means the end of all input
        is_end = not data
        data, self._held = self._held + data, ""
        if not self._pasting and (begun := BEGUN.search(data)) and not is_end:
            data, self._held = data[: begun.start()], begun[0]
            self._held_until = monotonic() + HELD_SECONDS
        position = 0
        for answer in ANSWERS.finditer(data):
            before = data[position : answer.start()]
            if self._is_pasting(before):
                continue
            if before:
                yield from self._keys(before)
            yield TerminalAnswered(**answer.groupdict())
            position = answer.end()
        if data[position:]:
            yield from self._keys(data[position:])
        if is_end:
            yield from self._keys("")

    def tick(self) -> Iterable[Message]:
        """Part of `XTermParser`: yield what time decides; what was held may have been keys."""
        if self._held and monotonic() >= self._held_until:
            held, self._held = self._held, ""
            yield from self._keys(held)
        yield from super().tick()

    def _keys(self, data: str) -> Iterable[Message]:
        position = 0
        for pair in _PAIR.finditer(data):
            before = data[position : pair.start()]
            if self._is_pasting(before):
                continue
            if before:
                yield from super().feed(before)
            if self._timeout_time is not None:
                # An Escape before this one, which waits for what follows it: its time is up.
                self._timeout_time = 0.0
                yield from super().tick()
            yield from self._sequence_to_key_events(pair[1], alt=True)
            position = pair.end()
        rest = data[position:]
        self._pasting = self._is_pasting(rest)
        if rest or not data:
            yield from super().feed(rest)

    def _is_pasting(self, data: str) -> bool:
        begun, ended = data.rfind(BRACKETED_PASTE_START), data.rfind(BRACKETED_PASTE_END)
        return begun > ended if max(begun, ended) >= 0 else self._pasting

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        if sequence == REPLY:  # read in two parts
            yield cast("events.Key", TerminalReply())
            return
        for event in super()._sequence_to_key_events(sequence, alt):
            # Without its character: a field would insert it otherwise.
            yield events.Key(f"alt+{event.key.removeprefix('alt+')}", None) if alt else event


def ask_identity(app: App[Any], query: str) -> None:
    """Send a query whose answers the parser recognizes."""
    driver = app._driver
    if isinstance(driver, LinuxDriver) and is_known():
        driver.write(query)
        driver.flush()


def install_alt_keys() -> None:
    """Make drivers that start from now on use the parser."""
    if is_known():
        linux_driver.XTermParser = AltKeyParser  # pyright: ignore[reportPrivateImportUsage]
