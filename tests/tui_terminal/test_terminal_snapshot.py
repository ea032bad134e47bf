"""How a terminal looks at 80x24."""

import asyncio

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from quarterdeck.tui.terminal.host import EmulatorHost, Exited, OutputEvent, Replay, StreamLost
from quarterdeck.tui.terminal.view import TerminalView

SCREEN = (
    "$ ls\r\n\x1b[1;34mdocs\x1b[0m  \x1b[32mrun.sh\x1b[0m  \x1b[36mlink\x1b[0m  README.md\r\n"
    "\x1b[38;2;255;120;0mtruecolor\x1b[0m \x1b[48;5;24m 256 \x1b[0m \x1b[7minverse\x1b[0m "
    "\x1b[2mfaint\x1b[0m \x1b[3mitalic\x1b[0m \x1b[9mstrike\x1b[0m "
    "\x1b[4msingle\x1b[0m \x1b[21mdouble\x1b[0m \x1b[4:3mcurly\x1b[0m\r\n"
    "wide: 漢字 e\u0301 ▲ │ █\r\n"
    + "".join([f"\x1b[4{n}m  {n}  \x1b[10{n}m  {n + 8}  " for n in range(8)])
    + "\x1b[0m\r\n$ "
)


class Terminal(App[None]):
    """One terminal and nothing else."""

    def __init__(self, list_source, *items) -> None:
        super().__init__()
        self.source = list_source(Replay(SCREEN.encode(), 80, 24), *items)

    def compose(self) -> ComposeResult:
        self.emulators = EmulatorHost()
        yield TerminalView(self.source, self.emulators)

    def on_mount(self) -> None:
        self.query_one(TerminalView).focus()

    async def on_unmount(self) -> None:
        await self.emulators.close()


def shown(text: str):
    """Waits for a text on the painted screen."""

    async def wait(pilot: Pilot[None]) -> None:
        view = pilot.app.query_one(TerminalView)
        async with asyncio.timeout(60):
            while not any(text in view.render_line(y).text for y in range(view.size.height)):
                await pilot.pause(0.01)
        await pilot.pause()

    return wait


def test_shell(snap_compare, list_source) -> None:
    app = Terminal(list_source)
    assert snap_compare(app, terminal_size=(80, 24), run_before=shown("wide: 漢字"))


@pytest.mark.long
def test_lost(snap_compare, list_source) -> None:
    app = Terminal(list_source, StreamLost("The connection was lost.", 3.0))
    assert snap_compare(app, terminal_size=(80, 24), run_before=shown("Trying again in 3 s"))


@pytest.mark.long
def test_ended(snap_compare, list_source) -> None:
    app = Terminal(list_source, OutputEvent(b"exit\r\n"), Exited(1))
    assert snap_compare(app, terminal_size=(80, 24), run_before=shown("ended with code 1"))
