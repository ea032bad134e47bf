"""Imports the HTTP library without its own command line, which would import rich and pygments.

They take half of the library's import time, and commands that do not draw must not import anything
that does. Must be imported before anything that imports the library.
"""

import sys
from importlib import import_module
from typing import Any, cast

_COMMAND_LINE = "httpx._main"


def _import_lean() -> None:
    if "httpx" in sys.modules:
        return
    modules = cast(dict[str, Any], sys.modules)
    modules[_COMMAND_LINE] = None  # makes its import fail, which the library handles
    try:
        import_module("httpx")
    finally:
        del modules[_COMMAND_LINE]


_import_lean()
