"""A small app with a picture, for the tests of what reaches the terminal. Run in a PTY: SETTING FILE."""

import sys
from pathlib import Path

from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.driver import Driver
from textual.screen import ModalScreen
from textual.widgets import Label, Static

from quarterdeck.tui.frames import DiffedFrames
from quarterdeck.tui.host_terminal import TerminalAnswered, TerminalIdentity
from quarterdeck.tui.options import Options
from quarterdeck.tui.pictures import PictureView
from quarterdeck.tui.textual_ext.driver import ask_identity, install_alt_keys, outlet_driver


class Question(ModalScreen[None]):
    """Covers a part of the picture."""

    CSS = """
    Question { align: center middle; background: transparent; }
    #box { width: 12; height: 3; background: red; }
    """
    BINDINGS = [("escape", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Label("Question")


class Sample(DiffedFrames, App[None]):
    """Keys: a question, picture gone, another picture, redraw, back from a suspension."""

    CSS = """
    Screen { background: black; }
    #before, #after { height: 1; }
    PictureView { background: black; margin: 0 3; }
    """
    BINDINGS = [
        ("f2", "ask", ""),
        ("f3", "drop", ""),
        ("f4", "other", ""),
        ("f7", "redraw", ""),
        ("f9", "away", ""),
    ]

    def __init__(self, images: str, content: bytes) -> None:
        super().__init__()
        self.options = Options(images=images)
        self.identity = TerminalIdentity()
        self._content = content

    def get_driver_class(self) -> type[Driver]:
        return outlet_driver(super().get_driver_class())

    def compose(self) -> ComposeResult:
        yield Static("before", id="before")
        yield PictureView(self._content)
        yield Static("waiting", id="after", markup=False)

    def on_mount(self) -> None:
        ask_identity(self, self.identity.expect())

    def on_terminal_answered(self, answer: TerminalAnswered) -> None:
        self.identity.take(answer)

    def on_picture_view_drawn(self, event: PictureView.Drawn) -> None:
        self.query_one("#after", Static).update(f"shown: {event.text}")

    def write_outside(self, sequence: str) -> None:
        assert self._driver is not None
        self._driver.write(sequence)
        self._driver.flush()

    def action_ask(self) -> None:
        self.push_screen(Question())

    async def action_drop(self) -> None:
        await self.query_one(PictureView).remove()
        self.query_one("#after", Static).update("gone")

    def action_other(self) -> None:
        self.query_one(PictureView).show_image(Path(sys.argv[3]).read_bytes())

    def action_away(self) -> None:
        with self.suspend():
            pass
        self.query_one("#after", Static).update("back")


if __name__ == "__main__":
    install_alt_keys()
    Sample(sys.argv[1], Path(sys.argv[2]).read_bytes()).run()
