"""What a program offers for the clipboard (OSC 52). It is refused as far as the program can tell;
the newest text is kept, and what becomes of it is decided in the cockpit.
"""

from typing import Any

import pyghostty

from quarterdeck.tui.terminal.core import CLIPBOARD_BYTES
from quarterdeck.tui.terminal.ghostty_grid import sized

ffi: Any = pyghostty.ffi
lib: Any = pyghostty.lib


class Clipboard:
    """One terminal's offers. Reading the clipboard is never answered."""

    def __init__(self, terminal: Any) -> None:
        self._offered: str | None = None
        limit = ffi.new("size_t*", CLIPBOARD_BYTES)
        lib.ghostty_terminal_set(
            terminal, lib.GHOSTTY_TERMINAL_OPT_CLIPBOARD_WRITE_MAX_BYTES, limit
        )
        self._callback = ffi.callback("GhosttyTerminalClipboardWriteFn", self._offer)
        lib.ghostty_terminal_set(terminal, lib.GHOSTTY_TERMINAL_OPT_CLIPBOARD_WRITE, self._callback)

    def _offer(self, _terminal: Any, _data: Any, write: Any) -> None:
        for number in range(write.contents_len):
            content = write.contents[number]
            mime = _text(content.mime)
            if mime.startswith("text/plain"):
                self._offered = _text(content.data)
        if write.reply:
            reply = sized("GhosttyClipboardWriteReply")
            reply.result = lib.GHOSTTY_CLIPBOARD_WRITE_RESULT_DENIED
            write.reply(write, reply)

    def take(self) -> str | None:
        """The newest offer since the last call."""
        offered, self._offered = self._offered, None
        return offered


def _text(string: Any) -> str:
    if not string.len:
        return ""
    raw: bytes = ffi.buffer(string.ptr, min(string.len, CLIPBOARD_BYTES))[:]
    return raw.decode("utf-8", "replace")
