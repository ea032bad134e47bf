"""`TerminalView`: a real terminal as a Textual widget.

What the app must do
- Make one `EmulatorHost`, give it to every view, `await host.close()` at exit.
- Nothing for keys: while a view has focus it consumes every key, so that neither priority bindings
  of the app (ctrl+q, the palette's ctrl+p) nor the screen's (tab) see them. Keys of the app are
  reached through the prefix key: handle `TerminalView.PrefixPressed`.
- Act on `CopyWanted`: the view never writes to the clipboard itself.
"""

from textual.message import Message
from textual.widget import Widget

from quarterdeck.tui.terminal.host import EmulatorHost
from quarterdeck.tui.terminal.source import TerminalSource


class TerminalView(Widget, can_focus=True):
    """A terminal fed by a source."""

    PREFIX = "ctrl+g"
    """The one key that is not sent to the program; pressed twice it is."""

    class ViewMessage(Message):
        """Base of the view's messages; `control` is the view."""

        def __init__(self, view: "TerminalView") -> None:
            super().__init__()
            self.view = view

        @property
        def control(self) -> "TerminalView":
            """The view that sent it."""
            return self.view

    class PrefixPressed(ViewMessage):
        """The prefix key was pressed; the next key belongs to whoever takes the focus."""

    class CopyWanted(ViewMessage):
        """The reader selected `text` with the mouse."""

        def __init__(self, view: "TerminalView", text: str) -> None:
            super().__init__(view)
            self.text = text

    class TitleChanged(ViewMessage):
        """The program named its window; already free of control characters."""

        def __init__(self, view: "TerminalView", title: str) -> None:
            super().__init__(view)
            self.title = title

    class BellRang(ViewMessage):
        """The program rang the bell."""

    class Ended(ViewMessage):
        """The shell ended."""

        def __init__(self, view: "TerminalView", code: int | None) -> None:
            super().__init__(view)
            self.code = code

    def __init__(
        self,
        source: TerminalSource,
        host: EmulatorHost,
        *,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.source = source
        self.host = host

    def send_prefix(self) -> None:
        """Types the prefix key itself into the program."""
