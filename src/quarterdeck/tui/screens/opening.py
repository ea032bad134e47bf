"""The first frame: the top and bottom lines, drawn before everything else is loaded."""

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import Screen

from quarterdeck.store.status import ConnectionState
from quarterdeck.tui.actions import BY_STATE, KeyContext, brief_keys
from quarterdeck.tui.widgets.key_line import KeyLine
from quarterdeck.tui.widgets.status_line import StatusLine


class OpeningScreen(Screen[None]):
    """Replaces the main screen while its parts, half of the program, are being loaded."""

    DEFAULT_CSS = """
    OpeningScreen Vertical { height: 1fr; }
    """

    def __init__(self, endpoint: str) -> None:
        super().__init__()
        self._endpoint = endpoint

    def compose(self) -> ComposeResult:
        yield StatusLine()
        yield Vertical()
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one(StatusLine).show(ConnectionState(self._endpoint), [])
        self.query_one(KeyLine).show(brief_keys(KeyContext.LIST, without=BY_STATE))
