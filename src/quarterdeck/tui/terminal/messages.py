"""What a `TerminalView` tells whoever holds it; handlers are called `on_terminal_view_...`."""

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from quarterdeck.tui.terminal.view import TerminalView


class ViewMessage(Message, namespace="terminal_view"):
    """Base of the view's messages; `control` is the view."""

    def __init__(self, view: "TerminalView") -> None:
        super().__init__()
        self.view = view

    @property
    def control(self) -> "TerminalView":
        """The view that sent it."""
        return self.view


class PrefixPressed(ViewMessage, namespace="terminal_view"):
    """The prefix key was pressed; the next key belongs to whoever takes the focus."""


class CopyWanted(ViewMessage, namespace="terminal_view"):
    """The reader selected `text` with the mouse."""

    def __init__(self, view: "TerminalView", text: str) -> None:
        super().__init__(view)
        self.text = text


class LinkWanted(ViewMessage, namespace="terminal_view"):
    """The reader pointed at a link; `uri` comes from the program and may be anything."""

    def __init__(self, view: "TerminalView", uri: str) -> None:
        super().__init__(view)
        self.uri = uri


class ClipboardOffered(ViewMessage, namespace="terminal_view"):
    """The program wants `text` on the clipboard."""

    def __init__(self, view: "TerminalView", text: str) -> None:
        super().__init__(view)
        self.text = text


class ReadingChanged(ViewMessage, namespace="terminal_view"):
    """The reader began, ended, or is elsewhere; or other rows are in view."""


class TitleChanged(ViewMessage, namespace="terminal_view"):
    """The program named its window; already free of control characters."""

    def __init__(self, view: "TerminalView", title: str) -> None:
        super().__init__(view)
        self.title = title


class BellRang(ViewMessage, namespace="terminal_view"):
    """The program rang the bell."""


class Ended(ViewMessage, namespace="terminal_view"):
    """The shell ended; keys are the app's again. `code` is null when it is not known."""

    def __init__(self, view: "TerminalView", code: int | None) -> None:
        super().__init__(view)
        self.code = code
