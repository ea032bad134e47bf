"""A note that comes up, while somebody asks where widgets are before the layout was made."""

from textual.app import App, ComposeResult
from textual.widgets import Static

from quarterdeck.tui.frames import DiffedFrames, SettledLayout


class NoteScreen(SettledLayout[None]):
    """`n` shows the note."""

    CSS = """
    #body { height: 1fr; }
    #more { display: none; }
    #note { display: none; height: auto; border: round white; }
    """

    def compose(self) -> ComposeResult:
        yield Static("body", id="body")
        yield Static("first line", id="note")
        yield Static("more", id="more")
        yield Static("below", id="below")

    def key_n(self) -> None:
        self.query_one("#note").display = True

    def key_m(self) -> None:
        """The note moves up, and a question where it is comes too early."""
        self.query_one("#more").display = True
        self._compositor._full_map_invalidated = True
        self.find_widget(self.query_one("#note"))


class LayoutApp(DiffedFrames, App[None]):
    """One screen."""

    def on_mount(self) -> None:
        self.push_screen(NoteScreen())


if __name__ == "__main__":
    LayoutApp().run()
