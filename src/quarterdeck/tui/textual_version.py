"""Whether the Textual that is installed is the one whose private parts are known here."""

from functools import cache
from pathlib import Path
from typing import Final

import textual

KNOWN_VERSION: Final = "8.2.8"


@cache
def is_known() -> bool:
    """With another version, what reaches into private parts stays out of the way."""
    installed = Path(textual.__file__).parents[1] / f"textual-{KNOWN_VERSION}.dist-info"
    if installed.is_dir():
        return True
    # Installed in another way; to ask costs a start 25 ms, so only then.
    from importlib.metadata import version

    return version("textual") == KNOWN_VERSION
