"""Reading a program's code, which is most of what its start costs."""

import gc
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import cast

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


class _Undescribed(dict[str, object]):
    """A base class in place of `TypedDict`."""

    def __init_subclass__(cls, **_: object) -> None: ...


def load_pydantic_core() -> None:
    """Load pydantic's core without compiling the types of its 90 typed dictionaries, which takes 6 ms.

    They describe its schemas to type checkers; nothing reads them at run time.
    """
    modules = [import_module("typing"), import_module("typing_extensions")]
    kept = [vars(module)["TypedDict"] for module in modules]
    for module in modules:
        vars(module)["TypedDict"] = _Undescribed
    try:
        import_module("pydantic_core")
    finally:
        for module, typed_dict in zip(modules, kept, strict=True):
            vars(module)["TypedDict"] = typed_dict


def load_later(
    *names: str, light: str | None = None, instead: Mapping[str, object] = MappingProxyType({})
) -> None:
    """Let modules be loaded when something in them is used, not when they are imported.

    For what a library imports and this process has no use for. Names that the module `light` has are taken
    from it, and load nothing else, nor do those of `instead`, which stand for something that is not used.
    Not for a package of which others import modules.
    """
    for name in names:
        if name not in sys.modules:
            later = sys.modules[name] = ModuleType(name)
            vars(later).update(instead, __getattr__=partial(_look_up, later, light))
            package, _, last = name.rpartition(".")
            if package:
                setattr(import_module(package), last, later)


def _look_up(later: ModuleType, light: str | None, attribute: str) -> object:
    if attribute == "__path__":  # each import of a name asks whether this is a package
        raise AttributeError(attribute)
    if light is not None and hasattr(known := import_module(light), attribute):
        return getattr(known, attribute)
    if sys.modules.get(later.__name__) is later:
        del sys.modules[later.__name__]
    return getattr(import_module(later.__name__), attribute)


class _NoSocket:
    """In place of `ssl.SSLSocket`; asyncio asks of each socket whether it is one."""


def load_tls_later() -> None:
    """Let OpenSSL be loaded with the first use of TLS: it takes 7 ms, and 4.6 MB of memory.

    Must be called before asyncio is imported. Hashes are computed by Python's own modules from then on.
    """
    try:
        import_module("_sha1")
    except ImportError:
        pass  # Python was built to hash by OpenSSL alone
    else:
        sys.modules["_hashlib"] = cast(ModuleType, None)  # makes its import fail
        try:
            import_module("hashlib")
            import_module("hmac")
        finally:
            del sys.modules["_hashlib"]
    load_later("ssl", instead={"SSLSocket": _NoSocket})
    load_later("asyncio.sslproto")


@contextmanager
def loading() -> Generator[None]:
    """Run the imports of the block without the garbage collector, and without pydantic's plugins from then on.

    They create tens of thousands of objects and almost no garbage. Scanning those repeatedly takes up
    to a third of the start-up time. Later collections skip them as well.
    """
    leave_plugins_out()
    gc.disable()
    load_pydantic_core()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
