"""Reading a program's code, which is most of what its start costs."""

import gc
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType

_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"
_PLUGIN_LOADER = "pydantic.plugin._loader"


def leave_plugins_out() -> None:
    """Let pydantic find no plugins, unless the user asks for them with PYDANTIC_DISABLE_PLUGINS=no.

    The program uses none. To search for them pydantic reads the metadata of all installed packages, which takes up to
    a third of the start-up time. Where that variable turns plugins off, it still loads the library for it, 2 MB. A
    pydantic whose module has another name loads it too.
    """
    if _PLUGINS not in os.environ:
        loader = ModuleType(_PLUGIN_LOADER)
        vars(loader)["get_plugins"] = tuple
        sys.modules.setdefault(_PLUGIN_LOADER, loader)


@contextmanager
def loading() -> Generator[None]:
    """Run the imports of the block without the garbage collector, and without pydantic's plugins from then on.

    They create tens of thousands of objects and almost no garbage. Scanning those repeatedly takes up
    to a third of the start-up time. Later collections skip them as well.
    """
    leave_plugins_out()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
