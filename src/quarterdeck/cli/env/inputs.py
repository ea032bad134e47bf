"""Reading values that must not be in a command's arguments, where everybody sees them."""

import sys
from pathlib import Path

import click

from quarterdeck.cli.errors import UsageFault


def read_text(source: str | None) -> str:
    """The text of a file, or of stdin when none is named or `-` is.

    Raises:
        UsageFault: it cannot be read, or is no text.
    """
    try:
        if source is None or source == "-":
            return sys.stdin.read()
        return Path(source).read_text(encoding="utf-8")
    except OSError as e:
        raise UsageFault(f"{source} cannot be read: {e.strerror}.") from e
    except UnicodeDecodeError as e:
        raise UsageFault(f"{source or 'stdin'} is no UTF-8 text.") from e


def read_secret(prompt: str) -> str:
    """One secret: asked for without showing it, or all of stdin but its last line end."""
    if sys.stdin.isatty():
        return click.prompt(prompt, hide_input=True, err=True)
    text = read_text(None)
    return text.removesuffix("\n").removesuffix("\r")
