"""Errors of the embedded terminal.

TerminalFault
  EmulatorClosed     the terminal or its host was closed
  EmulatorFailed     the emulator gave this terminal up, with a sentence for the reader
  BadFrame           the child process said something that is no frame
"""


class TerminalFault(Exception):
    """Base of this package's errors."""


class EmulatorClosed(TerminalFault):
    """The terminal or its host was closed."""


class EmulatorFailed(TerminalFault):
    """The emulator cannot show this terminal; the text says why, for the reader."""


class BadFrame(TerminalFault):
    """The child process said something that is no frame."""
