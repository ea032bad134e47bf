"""Which keys a program wants told apart.

The library keeps `modifyOtherKeys` where only its own key encoder can read it. So the encoder is set up
from the terminal and asked for one key that differs.
"""

from typing import Any

import pyghostty

ffi: Any = pyghostty.ffi
lib: Any = pyghostty.lib

_CTRL = 1 << 1
_TOLD_APART = b"\x1b[27;5;97~"
"""Ctrl+A to a program that asked for it; else it is one control character."""


class OtherKeys:
    """Reads `modifyOtherKeys` of one terminal."""

    def __init__(self, terminal: Any) -> None:
        self._terminal = terminal
        self._encoder = ffi.new("GhosttyKeyEncoder*")
        self._event = ffi.new("GhosttyKeyEvent*")
        pyghostty.core.check(lib.ghostty_key_encoder_new(ffi.NULL, self._encoder), "key encoder")
        pyghostty.core.check(lib.ghostty_key_event_new(ffi.NULL, self._event), "key event")
        self._letter = ffi.new("char[]", b"a")
        self._typed = ffi.new("char[32]")
        self._length = ffi.new("size_t*")
        self._no_kitty = ffi.new("uint8_t*", 0)
        event = self._event[0]
        lib.ghostty_key_event_set_action(event, lib.GHOSTTY_KEY_ACTION_PRESS)
        lib.ghostty_key_event_set_key(event, lib.GHOSTTY_KEY_A)
        lib.ghostty_key_event_set_mods(event, _CTRL)
        lib.ghostty_key_event_set_utf8(event, self._letter, 1)
        lib.ghostty_key_event_set_unshifted_codepoint(event, ord("a"))

    @property
    def wanted(self) -> bool:
        """Whether the program asked for `modifyOtherKeys` 2."""
        encoder, length = self._encoder[0], self._length
        lib.ghostty_key_encoder_setopt_from_terminal(encoder, self._terminal)
        # The kitty protocol would go before, and is not offered.
        kitty = lib.GHOSTTY_KEY_ENCODER_OPT_KITTY_FLAGS
        lib.ghostty_key_encoder_setopt(encoder, kitty, self._no_kitty)
        lib.ghostty_key_encoder_encode(encoder, self._event[0], self._typed, 32, length)
        return bool(ffi.buffer(self._typed, length[0])[:] == _TOLD_APART)

    def close(self) -> None:
        """Gives back what the library holds."""
        lib.ghostty_key_event_free(self._event[0])
        lib.ghostty_key_encoder_free(self._encoder[0])
