"""Imports the HTTP library without its own command line, which would bring rich and pygments in.

Half of the library's import time, and a rule of the command line: verbs that do not draw import
nothing that draws. Must be imported before anything that imports the library.
"""

import sys
from importlib import import_module
from typing import Any, cast

_COMMAND_LINE = "httpx._main"


def _import_lean() -> None:
    if "httpx" in sys.modules:
        return
    modules = cast(dict[str, Any], sys.modules)
    modules[_COMMAND_LINE] = None  # makes its import fail, which the library allows for
    try:
        import_module("httpx")
    finally:
        del modules[_COMMAND_LINE]


_import_lean()
