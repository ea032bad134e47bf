"""A small app of everything that draws in its own way, for the differ's test. Run in a PTY."""

import sys

from rich.text import Text
from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Label, ListItem, ListView, RichLog, Static, TextArea

from quarterdeck.tui.frames import DiffedFrames


class Question(ModalScreen[None]):
    """Covers a part of the screen, wide characters under its edges."""

    CSS = "Question { align: center middle; } #box { width: 31; height: 9; border: thick red; }"
    BINDINGS = [("escape", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Label("Delete \u6f22\u5b57 and all?")
            yield Input(placeholder="name")

    def on_mount(self) -> None:
        self.query_one(Input).cursor_blink = False


class Sample(DiffedFrames, App[None]):
    """Keys: f2 modal, f3 log lines, f4 a link and marks, f8 a checkpoint."""

    CSS = """
    #side { width: 30; }
    ListView { height: 1fr; }
    Input { height: 3; }
    TextArea, RichLog { height: 1fr; }
    #mark { height: 1; dock: bottom; background: $primary; }
    """
    BINDINGS = [
        ("f2", "ask", "Ask"),
        ("f3", "log", "Log"),
        ("f4", "odd", "Odd"),
        ("f7", "redraw", "Redraw"),
    ]
    marks = 0
    lines = 0

    def compose(self) -> ComposeResult:
        with Horizontal():
            with Vertical(id="side"):
                yield ListView(*(ListItem(Label(self.row(n))) for n in range(30)))
                yield Input(id="name")
            with Vertical():
                yield TextArea("some text\n\u6f22\u5b57 wide \uff21\uff22\n" * 3)
                yield RichLog()
        yield Static("mark 0", id="mark")

    @staticmethod
    def row(n: int) -> str:
        return f"item {n} \u6f22\u5b57" if n % 3 else f"\u6f22{n}\u5b57 item e\u0301"

    def on_mount(self) -> None:
        self.query_one("#name", Input).cursor_blink = False
        self.query_one(TextArea).cursor_blink = False
        self.query_one(ListView).focus()

    def on_key(self, event: object) -> None:
        if getattr(event, "key", "") == "f8":
            self.call_after_refresh(self.mark)

    def mark(self) -> None:
        self.marks += 1
        self.query_one("#mark", Static).update(f"mark {self.marks}")
        if self.screen is not self.screen_stack[0]:
            self.screen.query_one(Label).update(f"mark {self.marks} \u6f22")

    def action_ask(self) -> None:
        self.push_screen(Question())

    def action_log(self) -> None:
        log = self.query_one(RichLog)
        for _ in range(7):
            self.lines += 1
            log.write(Text(f"line {self.lines} \u6f22\u5b57", style=f"color({self.lines % 200})"))

    def action_odd(self) -> None:
        text = Text("a link ", style="bold link https://example.org/x")
        text.append("e\u0301\u0302 dim", style="dim italic underline on rgb(1,2,3)")
        text.append(" reversed ", style="reverse strike")
        self.query_one(RichLog).write(text)


if __name__ == "__main__":
    Sample().run(mouse="mouse" in sys.argv)
