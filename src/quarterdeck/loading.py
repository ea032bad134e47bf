"""Reading a program's code, which is most of what its start costs."""

import gc
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
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


def load_later(*names: str, light: str | None = None) -> None:
    """Let modules be loaded when something in them is used, not when they are imported.

    For what a library imports and this process has no use for. Names that the module `light` has are taken
    from it, and load nothing else.
    """
    for name in names:
        if name not in sys.modules:
            later = sys.modules[name] = ModuleType(name)
            vars(later)["__getattr__"] = partial(_look_up, later, light)
            package, _, last = name.rpartition(".")
            if package:
                setattr(import_module(package), last, later)


def _look_up(later: ModuleType, light: str | None, attribute: str) -> object:
    if light is not None:
        if attribute == "__path__":  # each import of a name asks whether this is a package
            raise AttributeError(attribute)
        if hasattr(known := import_module(light), attribute):
            return getattr(known, attribute)
    if sys.modules.get(later.__name__) is later:
        del sys.modules[later.__name__]
    return getattr(import_module(later.__name__), attribute)


def leave_tls_out() -> None:
    """Load Python's own modules as it does where it was built without OpenSSL, for a process that opens no TLS.

    Later imports of `ssl` find it, but not asyncio.
    """
    names = ["ssl", "_hashlib"]
    try:
        import_module("_sha1")
    except ImportError:
        names.remove("_hashlib")  # it was built to hash by OpenSSL alone
    sys.modules |= dict.fromkeys(names)
    try:
        for using in ("asyncio", "hashlib", "hmac"):
            import_module(using)
    finally:
        for name in names:
            del sys.modules[name]
    load_later("ssl")


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
