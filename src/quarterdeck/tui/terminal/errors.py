"""Errors of the embedded terminal.

TerminalFault
  BadFrame           the child process said something that is no message
"""


class TerminalFault(Exception):
    """Base of this package's errors."""


class BadFrame(TerminalFault):
    """The child process said something that is no message."""
