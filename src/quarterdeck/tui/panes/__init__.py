"""The right side of the main screen: chat and terminals of a replica.

The dialogs of a chat are imported when the first of them is opened.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quarterdeck.tui.panes import chat_dialogs

__all__ = ["chat_dialogs"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
