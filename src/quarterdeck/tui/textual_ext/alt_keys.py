"""Escape and a character that arrive together, as the terminal meant them.

Over a slow connection Escape and the next key come in one read, just as Alt and a key do. Textual keeps
the Escape for letters and digits only: of Escape and a colon, which is how a file is saved in vi, and of
Alt and Enter, only the second half is left. Here each such pair is one key with `alt+`; the terminal
pane types it as the two bytes it was, and a field ignores it unless it binds such a key.

Uses private parts of one exact version of Textual; with any other version it does nothing.
"""

import re
from collections.abc import Iterable

from textual import events
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.drivers import linux_driver
from textual.message import Message

from quarterdeck.tui.textual_ext.driver import is_known

_PAIR = re.compile("\x1b([^\x1b\\[O\\]P_^])")
"""Escape and a character that starts no sequence of the terminal."""


class AltKeyParser(XTermParser):
    """Textual's parser, which also recognizes Alt with any single character."""

    _pasting = False

    def feed(self, data: str) -> Iterable[Message]:
        """Yield the events of what was read."""
        position = 0
        for pair in _PAIR.finditer(data):
            before = data[position : pair.start()]
            if self._is_pasting(before):
                continue
            if before:
                yield from super().feed(before)
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
        for event in super()._sequence_to_key_events(sequence, alt):
            # Without its character: a field would insert it otherwise.
            yield events.Key(f"alt+{event.key.removeprefix('alt+')}", None) if alt else event


def install() -> None:
    """Make drivers that start from now on use the parser."""
    if is_known():
        linux_driver.XTermParser = AltKeyParser  # pyright: ignore[reportPrivateImportUsage]
