"""Reading in the widget: keys of the reader, marks on the screen, links, what programs offer."""

import os
import signal

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.message import Message

from quarterdeck.tui.terminal.core import Step
from quarterdeck.tui.terminal.host import EmulatorHost, OutputEvent, Replay, TerminalSource
from quarterdeck.tui.terminal.view import TerminalView

LINES = b"".join([b"line %d needle\r\n" % n for n in range(200)])


class Desk(App[None]):
    """A terminal, and what it tells."""

    def __init__(self, source: TerminalSource, host: EmulatorHost) -> None:
        super().__init__()
        self.view = TerminalView(source, host)
        self.heard: list[Message] = []

    def compose(self) -> ComposeResult:
        yield self.view

    def on_mount(self) -> None:
        self.view.focus()

    def on_terminal_view_link_wanted(self, message: TerminalView.LinkWanted) -> None:
        self.heard.append(message)

    def on_terminal_view_copy_wanted(self, message: TerminalView.CopyWanted) -> None:
        self.heard.append(message)

    def on_terminal_view_clipboard_offered(self, message: TerminalView.ClipboardOffered) -> None:
        self.heard.append(message)

    def shown(self, y: int) -> str:
        return self.view.render_line(y).text.rstrip()

    def marked(self, y: int) -> list[str]:
        """The parts of a line with another background."""
        plain = self.view.rich_style.bgcolor
        return [s.text for s in self.view.render_line(y) if s.style.bgcolor != plain]


async def test_a_search_is_marked_and_left_by_typing(host, list_source, wait_for) -> None:
    source = list_source(Replay(LINES, 80, 24))
    app = Desk(source, host)
    async with app.run_test() as pilot:
        await wait_for(lambda: app.shown(22) == "line 199 needle")
        app.view.start_reading()
        app.view.find("NEEDLE")
        await wait_for(lambda: app.view.reading.matches == 200)
        await wait_for(lambda: app.marked(3) == ["needle"])
        assert len({s.style.bgcolor for y in (3, 22) for s in app.view.render_line(y)}) == 4
        app.view.find("line 5 ")
        await wait_for(lambda: app.shown(0) == "line 5 needle")  # no note over what is read
        source.put(OutputEvent(b"more\r\n" * 100))
        await wait_for(lambda: app.view.lines_back == 272)
        assert app.shown(0) == "line 5 needle"
        app.view.post_message(events.Paste("x"))
        await wait_for(lambda: app.shown(22) == "more")
        assert not app.view.reads and source.sent == ["x"]
        await pilot.pause()
        assert all(app.marked(y) == [] for y in range(22))


@pytest.mark.long
async def test_the_wheel_reads_and_the_program_gets_no_mouse(host, list_source, wait_for) -> None:
    source = list_source(Replay(LINES + b"\x1b[?1003h\x1b[?1006h", 80, 24))
    app = Desk(source, host)
    async with app.run_test() as pilot:
        await wait_for(lambda: app.shown(22) == "line 199 needle")
        app.view.start_reading()
        await pilot.mouse_down(app.view, offset=(3, 2))
        await pilot.mouse_up(app.view, offset=(3, 2))
        app.view.post_message(events.MouseScrollUp(app.view, 3, 3, 0, 0, 0, False, False, False))
        await wait_for(lambda: app.view.lines_back == 3)
        app.view.read(Step.MARK_LINES)
        app.view.read(Step.UP)
        text = await app.view.marked_text()
        assert text.count("needle") == 2 and source.sent == []


@pytest.mark.long
async def test_reading_ends_with_the_emulator(host, list_source, wait_for) -> None:
    source = list_source(Replay(LINES, 80, 24))
    app = Desk(source, host)
    async with app.run_test() as pilot:
        await wait_for(lambda: app.shown(22) == "line 199 needle")
        app.view.start_reading()
        await wait_for(lambda: app.view.content.state.reading)
        os.kill(host.pid, signal.SIGKILL)
        await wait_for(lambda: not app.view.reads)
        await wait_for(lambda: app.view.content.state.reading is None)
        await pilot.press("x")
        await wait_for(lambda: source.sent == ["x"])


@pytest.mark.long
async def test_a_link_is_told_only_for_a_click_with_ctrl(host, list_source, wait_for) -> None:
    text = b"\x1b]8;;https://evil.example/\x07good\x1b]8;;\x07 plain\r\n"
    app = Desk(list_source(Replay(text, 80, 24)), host)
    async with app.run_test() as pilot:
        await wait_for(lambda: app.shown(0) == "good plain")
        await pilot.hover(app.view, offset=(2, 0))
        await pilot.click(app.view, offset=(2, 0))
        await pilot.click(app.view, offset=(7, 0), control=True)
        await pilot.click(app.view, offset=(2, 0), control=True)
        await wait_for(lambda: app.heard)
        assert [one.uri for one in app.heard] == ["https://evil.example/"]


@pytest.mark.long
async def test_what_programs_offer_is_told_once_and_not_again(host, list_source, wait_for) -> None:
    source = list_source(Replay(b"\x1b]52;c;b2xk\x07ready", 80, 24))
    app = Desk(source, host)
    async with app.run_test():
        await wait_for(lambda: app.shown(0) == "ready")
        source.put(OutputEvent(b"\x1b]52;c;b25l\x07" * 10_000 + b"\x1b]52;c;bmV3\x07\x1b[Hdone!"))
        # The frame is shown at once, the message takes its turn in the app.
        await wait_for(lambda: app.shown(0) == "done!" and "new" in [one.text for one in app.heard])
        assert len(app.heard) < 100
        assert "old" not in [one.text for one in app.heard]
        count = len(app.heard)
        os.kill(host.pid, signal.SIGKILL)
        source.put(OutputEvent(b"\x1b[Hagain"))
        await wait_for(lambda: app.shown(0) == "again")
        assert len(app.heard) == count


@pytest.mark.long
@pytest.mark.parametrize(("y", "seen"), [(-1, "line 160 "), (24, "line 199 ")])
async def test_a_selection_is_pulled_beyond_the_edge(
    host, list_source, wait_for, y: int, seen: str
) -> None:
    app = Desk(list_source(Replay(LINES, 80, 24)), host)
    async with app.run_test():
        view = app.view
        await wait_for(lambda: app.shown(22) == "line 199 needle")
        view._emulator.scroll(-10)
        await wait_for(lambda: view.lines_back == 10)

        def mouse(kind: type[events.MouseEvent], y: int) -> None:
            view.post_message(kind(view, 2, y, 0, 0, 1, False, False, False))

        mouse(events.MouseDown, 12)
        mouse(events.MouseMove, y)
        await wait_for(lambda: any(seen in app.shown(row) for row in range(24)))
        mouse(events.MouseUp, y)
        await wait_for(lambda: app.heard)
        assert app.heard[0].text.count("needle") > 10
        assert view._pulling is None
