"""The widget in a Textual app, over lists of items and over real pseudo-terminals."""

import asyncio
import os
import signal

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input

from quarterdeck.tui.terminal.channel import FrameDelta
from quarterdeck.tui.terminal.host import (
    EmulatorHost,
    OutputEvent,
    Replay,
    Resized,
    StreamLost,
    StreamRestored,
    TerminalSource,
)
from quarterdeck.tui.terminal.input import ResizeDebounce
from quarterdeck.tui.terminal.view import TerminalView


class Cockpit(App[None]):
    """An app that wants many keys for itself."""

    BINDINGS = [
        Binding("ctrl+x", "steal", priority=True),
        Binding("f5", "steal", priority=True),
        Binding("escape", "steal"),
    ]

    def __init__(self, source: TerminalSource, host: EmulatorHost) -> None:
        super().__init__()
        self.view = TerminalView(source, host)
        self.stolen = 0
        self.heard: list[Message] = []

    def compose(self) -> ComposeResult:
        yield self.view
        yield Input()

    def on_mount(self) -> None:
        self.query_one(Input).display = False
        self.view.focus()

    def action_steal(self) -> None:
        self.stolen += 1

    def on_terminal_view_prefix_pressed(self, message: TerminalView.PrefixPressed) -> None:
        self.heard.append(message)

    def on_terminal_view_copy_wanted(self, message: TerminalView.CopyWanted) -> None:
        self.heard.append(message)

    def on_terminal_view_title_changed(self, message: TerminalView.TitleChanged) -> None:
        self.heard.append(message)

    def on_terminal_view_bell_rang(self, message: TerminalView.BellRang) -> None:
        self.heard.append(message)

    def on_terminal_view_ended(self, message: TerminalView.Ended) -> None:
        self.heard.append(message)

    def shown(self, y: int) -> str:
        """A line as it is painted."""
        return self.view.render_line(y).text.rstrip()


BASH = ("bash", "--norc", "--noprofile", "-i")


async def test_a_shell(host, make_program, program_source, wait_for) -> None:
    source = program_source(make_program(*BASH))
    app = Cockpit(source, host)
    async with app.run_test(size=(100, 30)) as pilot:
        await wait_for(lambda: "$" in app.shown(0))
        for key in ["e", "c", "h", "o", "space", "h", "é", "enter"]:
            await pilot.press(key)
        await wait_for(lambda: app.shown(1) == "hé")
        assert source.sizes == [(100, 30)]
        await pilot.press("ctrl+d")
        await wait_for(lambda: app.heard)
        assert isinstance(app.heard[-1], TerminalView.Ended)
        await wait_for(lambda: "shell ended" in app.shown(29))
        await pilot.press("f5")
        assert app.stolen == 1


@pytest.mark.long
async def test_every_key_but_the_prefix_goes_to_the_program(host, list_source, wait_for) -> None:
    source = list_source()
    app = Cockpit(source, host)
    keys = {
        "ctrl+c": "\x03", "ctrl+q": "\x11", "ctrl+p": "\x10", "ctrl+x": "\x18", "tab": "\t",
        "shift+tab": "\x1b[Z", "escape": "\x1b", "f5": "\x1b[15~", "f1": "\x1bOP",
    }  # fmt: skip
    async with app.run_test() as pilot:
        await pilot.press(*keys)
        await wait_for(lambda: "".join(source.sent) == "".join(keys.values()))
        assert app.stolen == 0 and app.view.has_focus
        await pilot.press("ctrl+g")
        await wait_for(lambda: len(app.heard) == 1)
        assert "\x07" not in "".join(source.sent)
        await pilot.press("ctrl+g")
        await wait_for(lambda: source.sent[-1] == "\x07")
        assert len(app.heard) == 1


@pytest.mark.long
async def test_program_modes_change_what_keys_send(host, list_source, wait_for) -> None:
    source = list_source(Replay(b"\x1b[?1h\x1b[?2004hready", 80, 24))
    app = Cockpit(source, host)
    async with app.run_test() as pilot:
        await wait_for(lambda: app.shown(0) == "ready")
        await pilot.press("up")
        await wait_for(lambda: source.sent == ["\x1bOA"])
        app.view.post_message(events.Paste("two\nlines"))
        await wait_for(lambda: source.sent[-1] == "\x1b[200~two\rlines\x1b[201~")


@pytest.mark.long
async def test_a_large_paste_goes_in_pieces_and_in_order(host, list_source, wait_for) -> None:
    source = list_source()
    app = Cockpit(source, host)
    text = "".join([f"{n:07d} " for n in range(131_072)])
    async with app.run_test() as pilot:
        app.view.post_message(events.Paste(text))
        await pilot.press("x")
        await wait_for(lambda: source.sent and source.sent[-1].endswith("x"))
        assert "".join(source.sent) == text + "x"
        assert max(map(len, source.sent)) <= 65_536


@pytest.mark.long
async def test_replies_are_typed(host, list_source, wait_for) -> None:
    source = list_source(Replay(b"\x1b[c", 80, 24), OutputEvent(b"\x1b[6n"))
    app = Cockpit(source, host)
    async with app.run_test():
        await wait_for(lambda: source.sent)
        assert source.sent == ["\x1b[1;1R"]


@pytest.mark.long
async def test_mouse_is_reported_when_asked_for(host, list_source, wait_for) -> None:
    source = list_source(Replay(b"\x1b[?1002h\x1b[?1006hready", 80, 24))
    app = Cockpit(source, host)
    async with app.run_test() as pilot:
        await wait_for(lambda: app.shown(0) == "ready")
        await pilot.mouse_down(app.view, offset=(3, 2))
        await pilot.hover(app.view, offset=(5, 2))
        await pilot.mouse_up(app.view, offset=(5, 2))
        await wait_for(lambda: source.sent and source.sent[-1].endswith("m"))
        sent = "".join(source.sent)
        assert sent.startswith("\x1b[<0;4;3M") and sent.endswith("\x1b[<0;6;3m")


@pytest.mark.long
async def test_selection_is_offered_for_copying(host, list_source, wait_for) -> None:
    source = list_source(Replay(b"hello brave world\r\nsecond line", 80, 24))
    app = Cockpit(source, host)
    async with app.run_test() as pilot:
        await wait_for(lambda: app.shown(1) == "second line")
        await pilot.mouse_down(app.view, offset=(6, 0))
        await pilot.hover(app.view, offset=(5, 1))
        await pilot.mouse_up(app.view, offset=(5, 1))
        await wait_for(lambda: app.heard)
        assert app.heard[0].text == "brave world\nsecond"
        plain = app.view.rich_style.bgcolor

        def marked() -> list[str]:
            return [s.text for s in app.view.render_line(0) if s.style.bgcolor != plain]

        await wait_for(lambda: "".join(marked()).rstrip() == "brave world")
        await pilot.press("a")
        await wait_for(lambda: marked() == [])
        assert source.sent == ["a"]


@pytest.mark.long
async def test_scrollback_and_back(host, list_source, wait_for) -> None:
    lines = b"".join([b"line %d\r\n" % n for n in range(200)])
    source = list_source(Replay(lines, 80, 24))
    app = Cockpit(source, host)
    async with app.run_test() as pilot:
        await wait_for(lambda: app.shown(22) == "line 199")
        await pilot.press("shift+pageup")
        await wait_for(lambda: app.shown(22) == "line 176")
        assert "23 lines back" in app.shown(0)
        source.put(OutputEvent(b"more\r\n"))
        await pilot.press("shift+pagedown")
        await wait_for(lambda: app.shown(22) == "line 199")
        await pilot.press("x")
        await wait_for(lambda: app.shown(22) == "more")
        assert "back" not in app.shown(0) and source.sent == ["x"]


@pytest.mark.long
async def test_wheel_scrolls_back_or_sends_arrows(host, list_source, wait_for) -> None:
    lines = b"".join([b"line %d\r\n" % n for n in range(200)])
    source = list_source(Replay(lines, 80, 24))
    app = Cockpit(source, host)

    def turn() -> None:
        wheel = events.MouseScrollUp(app.view, 3, 3, 0, 0, 0, False, False, False)
        app.view.post_message(wheel)

    async with app.run_test():
        await wait_for(lambda: app.shown(22) == "line 199")
        turn()
        await wait_for(lambda: app.shown(22) == "line 196")
        source.put(OutputEvent(b"\x1b[?1049hfull screen"))
        await wait_for(lambda: "full screen" in "".join(app.view.screen_text))
        turn()
        await wait_for(lambda: "".join(source.sent) == "\x1b[A" * 3)


@pytest.mark.long
async def test_another_clients_size_is_shown_in_part(host, list_source, wait_for) -> None:
    source = list_source(Replay(b"", 80, 24))
    app = Cockpit(source, host)
    async with app.run_test(size=(40, 10)):
        await wait_for(lambda: source.sizes == [(40, 10)])
        source.put(Resized(100, 30))
        source.put(OutputEvent(b"\x1b[H" + b"=" * 100 + b"\x1b[30;91Hthe corner"))
        await wait_for(lambda: app.shown(9).endswith("the corner"))
        source.put(OutputEvent(b"\x1b[H"))
        await wait_for(lambda: app.shown(0) == "=" * 40)
        source.put(Resized(30, 5))
        source.put(OutputEvent(b"\x1b[2J\x1b[Hsmall"))
        await wait_for(lambda: app.shown(0) == "small")
        outside = app.view.get_component_rich_style("terminal--outside")
        assert [s.style.bgcolor for s in app.view.render_line(7)] == [outside.bgcolor]


async def test_size_is_asked_for_once_it_has_settled(host, list_source, wait_for) -> None:
    source = list_source()
    app = Cockpit(source, host)
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_for(lambda: source.sizes == [(80, 24)])
        await pilot.resize_terminal(1, 1)
        await wait_for(lambda: source.sizes[-1] == (20, 5))
        await pilot.resize_terminal(600, 300)
        await wait_for(lambda: source.sizes[-1] == (500, 200))


async def test_a_size_that_still_changes_is_not_asked_for(list_source, wait_for) -> None:
    source = list_source()
    sizer = ResizeDebounce(source)
    run = asyncio.create_task(sizer.run())
    sizer.want(80, 24)
    await wait_for(lambda: source.sizes == [(80, 24)])
    for width in range(81, 91):
        sizer.want(width, 24)
        await asyncio.sleep(0)
    await wait_for(lambda: len(source.sizes) > 1)
    sizer.claim((90, 24))
    sizer.claim((60, 20))
    await wait_for(lambda: len(source.sizes) > 2)
    assert source.sizes == [(80, 24), (90, 24), (90, 24)]
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)


@pytest.mark.long
async def test_a_lost_link_is_told_and_nothing_typed_is_lost(host, list_source, wait_for) -> None:
    source = list_source(Replay(b"hello", 80, 24))
    app = Cockpit(source, host)
    async with app.run_test() as pilot:
        await wait_for(lambda: app.shown(0) == "hello")
        source.put(StreamLost("The connection was lost.", 3.0))
        await wait_for(lambda: "Trying again in 3 s" in app.shown(0))
        await pilot.press("a", "b")
        await wait_for(lambda: "".join(source.sent) == "ab")
        source.put(StreamRestored())
        await wait_for(lambda: app.shown(0) == "hello")


@pytest.mark.long
async def test_title_and_bell(host, list_source, wait_for) -> None:
    source = list_source(Replay(b"x\x07", 80, 24))
    app = Cockpit(source, host)
    async with app.run_test():
        await wait_for(lambda: app.shown(0) == "x")
        source.put(OutputEvent("\x1b]2;a\u202eb\x07\x07".encode()))
        await wait_for(lambda: len(app.heard) == 2)
        assert {type(m).__name__ for m in app.heard} == {"TitleChanged", "BellRang"}
        assert app.view.title == "ab"


@pytest.mark.long
async def test_a_hidden_view_is_not_painted(host, list_source, wait_for) -> None:
    source = list_source(Replay(b"one", 80, 24))
    app = Cockpit(source, host)
    async with app.run_test() as pilot:
        await wait_for(lambda: app.shown(0) == "one")
        app.view.display = False
        await pilot.pause()
        frames: list[object] = []
        taken, app.view.on_frame = app.view.on_frame, frames.append
        source.put(OutputEvent(b"\r\n" + b"two " * 10_000 + b"\r\nlast"))
        await pilot.pause(0.1)
        assert frames == []
        app.view.on_frame = taken
        app.view.display = True
        await wait_for(lambda: "last" in "".join(app.view.screen_text))


@pytest.mark.long
async def test_a_view_under_another_screen_is_not_painted(host, list_source, wait_for) -> None:
    source = list_source(Replay(b"one", 80, 24))
    app = Cockpit(source, host)
    async with app.run_test() as pilot:
        await wait_for(lambda: app.shown(0) == "one")
        await app.push_screen(Screen())
        await pilot.pause()
        frames: list[object] = []
        taken = app.view.on_frame
        app.view.on_frame = lambda frame: (frames.append(frame), taken(frame))
        for _ in range(10):
            source.put(OutputEvent(b"\r\ntwo"))
            await pilot.pause(0.03)
        assert len(frames) <= 1
        app.pop_screen()
        await wait_for(lambda: app.shown(10) == "two")


@pytest.mark.long
async def test_the_cursor(host, list_source, wait_for) -> None:
    source = list_source(Replay("a漢b\x1b[1;2H".encode(), 80, 24))
    app = Cockpit(source, host)
    async with app.run_test():
        await wait_for(lambda: app.shown(0) == "a漢b")
        plain = app.view.rich_style.bgcolor

        def marked() -> list[tuple[str, bool]]:
            strip = app.view.render_line(0)
            odd = [s for s in strip if s.style.bgcolor != plain]
            return [(s.text, s.style.bgcolor == app.view.rich_style.color) for s in odd]

        await wait_for(lambda: marked() == [("漢", True)])
        app.screen.set_focus(None)
        await wait_for(lambda: marked() == [("漢", False)])
        source.put(OutputEvent(b"\x1b[?25l"))
        await wait_for(lambda: marked() == [])


@pytest.mark.long
async def test_colors_follow_the_theme_and_the_program(host, list_source, wait_for) -> None:
    text = b"plain\x1b[38;2;1;2;3mrgb\x1b[0;7minverse\x1b[0;4:3mcurly\x1b[0m"
    source = list_source(Replay(text, 80, 24))
    app = Cockpit(source, host)
    async with app.run_test() as pilot:
        await wait_for(lambda: app.shown(0) == "plainrgbinversecurly")
        found = {s.text: s.style for s in app.view.render_line(0)}
        assert found["plain"].color == app.view.rich_style.color
        assert found["rgb"].color.triplet == (1, 2, 3)
        assert found["inverse"].reverse and found["curly"].underline
        before = found["plain"].bgcolor
        app.theme = "textual-light"
        await pilot.pause()
        await wait_for(lambda: next(iter(app.view.render_line(0))).style.bgcolor != before)


@pytest.mark.long
async def test_hostile_output_never_reaches_the_outer_terminal(host, list_source, wait_for) -> None:
    hostile = (
        b"\x1b]52;c;ZXZpbA==\x07\x1b]0;evil\x07\x1bPq#0~\x1b\\\x1b[c"
        + "\x9b31m\u202e\x85".encode()
        + b"l" * 300_000
    )
    source = list_source(
        Replay(b"", 80, 24), OutputEvent(hostile), OutputEvent(b"\x1b[Hsafe\x1b[K")
    )
    app = Cockpit(source, host)
    async with app.run_test():
        await wait_for(lambda: app.shown(0) == "safe")
        for y in range(24):
            text = app.view.render_line(y).text
            assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or c == "\u202e" for c in text)


@pytest.mark.long
async def test_the_emulator_killed_in_the_middle(host, list_source, wait_for) -> None:
    source = list_source(Replay(b"before\r\n", 80, 24))
    app = Cockpit(source, host)
    async with app.run_test():
        await wait_for(lambda: app.shown(0) == "before")
        os.kill(host.pid, signal.SIGKILL)
        source.put(OutputEvent(b"after"))
        await wait_for(lambda: app.shown(1) == "after")
        assert app.shown(0) == "before"


@pytest.mark.long
async def test_taken_away_under_a_flood(host, make_program, program_source, wait_for) -> None:
    app = Cockpit(program_source(make_program("yes")), host)
    async with app.run_test():
        frames: list[FrameDelta] = []
        taken = app.view.on_frame
        app.view.on_frame = lambda frame: (frames.append(frame), taken(frame))
        await wait_for(lambda: app.shown(20) == "y" and frames)
        pid = host.pid
        await app.view.remove()
        taken(frames[-1])  # one that was under way
    other = Cockpit(program_source(make_program("echo", "still here")), host)
    async with other.run_test():
        await wait_for(lambda: other.shown(0) == "still here")
    assert host.pid == pid


async def test_unmounting_ends_everything(host, list_source, wait_for) -> None:
    source = list_source()
    app = Cockpit(source, host)
    async with app.run_test():
        await wait_for(lambda: source.streams)
        await app.view.remove()
        assert source.closed == 1
    names = [t.get_coro().__qualname__ for t in asyncio.all_tasks()]
    assert not any("Feeder" in n or "Typist" in n or "Sizer" in n for n in names)


def _last(view: TerminalView) -> int:
    """The last line that is not empty."""
    return max(y for y, text in enumerate(view.screen_text) if text or not y)


@pytest.mark.long
@pytest.mark.parametrize(
    "flood", ["yes", r"while :; do printf '\e[4%dm%d' $((RANDOM%8)) $RANDOM; done"]
)
async def test_ctrl_c_stops_a_flood(
    host, make_program, program_source, wait_for, flood: str
) -> None:
    source = program_source(make_program(*BASH))
    app = Cockpit(source, host)
    async with app.run_test(size=(120, 40)) as pilot:
        await wait_for(lambda: "$" in app.shown(0))
        app.view.type(flood + "\n")
        await wait_for(lambda: app.shown(38) and app.shown(0))
        await pilot.press("ctrl+c")
        # Not alone in its line: the kernel drops what waits, so the echo of the key may stand behind
        # half a sequence, and the end of the line is then a part of that.
        await wait_for(lambda: app.view.screen_text[_last(app.view)].endswith("$"), 60)
        assert "\x03" in source.sent
