"""Reading a program's code, which is most of what its start costs."""

import gc
import os
from collections.abc import Generator
from contextlib import contextmanager

_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"


@contextmanager
def loading() -> Generator[None]:
    """Run the imports of the block without the garbage collector and pydantic's plugins.

    They create tens of thousands of objects and almost no garbage. Scanning those repeatedly takes up
    to a third of the start-up time. Later collections skip them as well.
    Searching for pydantic plugins, which the program does not use, takes up to another third;
    PYDANTIC_DISABLE_PLUGINS=no turns them on. Programs started later see the original environment.
    """
    given = os.environ.get(_PLUGINS)
    os.environ.setdefault(_PLUGINS, "1")
    gc.disable()
    try:
        yield
    finally:
        if given is None:
            del os.environ[_PLUGINS]
        gc.freeze()
        gc.enable()
