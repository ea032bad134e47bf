"""What a long chat costs, and how keys are answered while an agent talks."""

import asyncio
import json
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

from quarterdeck.client import LOCAL_URL, Client, HttpConnection
from quarterdeck.client.stream_events import Received
from quarterdeck.local.home import Home
from quarterdeck.wire.chats import SendMessage
from tests.bench.installation import QD, Installation, installation
from tests.bench.table import Row, resident_mb
from tests.support.program import Program

EVENTS = 100_000
STREAMED = 12_000
KEYS = 100
TYPED_A_SECOND = 20
"""As fast as anybody types."""
TALKER = Path(__file__).with_name("talker.py")
CONFIG = '[agents.talker]\nname = "Talker"\ncommand = ["{program}"]\n'


def chat_rows() -> list[Row]:
    """The view alone with everything loaded, then the cockpit over the service."""
    return [*_view_rows(), *_cockpit_rows()]


def _view_rows() -> list[Row]:
    argv = [sys.executable, "-m", "tests.bench.long_chat", str(EVENTS)]
    done = subprocess.run(argv, capture_output=True, check=True, text=True)
    told = json.loads(done.stdout)
    note = f"all of {EVENTS:,} events loaded"
    return [
        Row("chat view: shows the end", told["open"], "ms", 300, note),
        Row("chat view: page up, 95th percentile", told["page"], "ms", 50, note),
        Row("chat view: append, 95th percentile", told["append"], "ms", 5, note),
        Row("chat view: finds that words are nowhere", told["find"], "ms", None, note),
        Row("chat view: resident memory", told["memory"], "MB", None, note),
    ]


def _cockpit_rows() -> list[Row]:
    with installation(config=talker_config) as made:
        made.qd("replica", "create", "--name", "talk", "--agent", "talker", "--wait")
        asyncio.run(_say(made, f"many {EVENTS}"))
        with Program(
            QD, columns=120, lines=40, environment=made.environment, directory=made.repository
        ) as program:
            program.wait_for("talk")
            program.settle(0.5)
            begun = time.monotonic()
            program.type("\r")
            program.wait_for("that was the last one")
            opened = (time.monotonic() - begun) * 1000
            program.settle(0.5)
            program.type("\t")
            program.settle(0.3)
            pages = [_answer(program, "\x1b[5~") for _ in range(40)]
            memory = resident_mb(program.process.pid)
            for key in ("\x1b[F", "m"):
                program.type(key)
                program.settle(0.3)
            program.type(f"stream {STREAMED}\r")
            program.wait(lambda: re.search(r"word\d{3}", program.text) is not None)
            keys = [echo_of(program, "abcdefghij"[n % 10]) for n in range(KEYS)]
            program.wait_for("the stream is over", 60)
            peak = resident_mb(program.process.pid)
        note = f"of {EVENTS:,} events"
        return [
            Row("chat: key to the last page", opened, "ms", 300, note),
            Row("chat: page up, median", statistics.median(pages), "ms", 50, note),
            Row("chat: resident memory", max(memory, peak), "MB", 150, note),
            Row("chat: typed key while 1,000 pieces/s come, median", statistics.median(keys), "ms"),
            Row("chat: the same, 95th percentile", statistics.quantiles(keys, n=20)[-1], "ms", 30),
        ]


def talker_config(made: Installation) -> str:
    """The configuration of an installation with an agent that talks."""
    program = made.directory / "talker"
    program.write_text(f"#!{sys.executable} -I\n{TALKER.read_text()}")
    program.chmod(0o755)
    made.directory.chmod(0o755)
    return CONFIG.format(program=program)


def _answer(program: Program, key: str) -> float:
    """Milliseconds until the first bytes of what a key changes."""
    before, begun = program.sent, time.monotonic()
    program.type(key)
    program.wait(lambda: program.sent > before)
    elapsed = time.monotonic() - begun
    program.settle(0.05)
    return elapsed * 1000


def echo_of(program: Program, key: str) -> float:
    """Milliseconds until a typed character is in its place in the composer."""
    line, begun = _typed(program), time.monotonic()
    program.type(key)
    program.wait(lambda: _typed(program) != line)
    elapsed = (time.monotonic() - begun) * 1000
    while time.monotonic() < begun + 1 / TYPED_A_SECOND:
        program.pump(0.005)
    return elapsed


def _typed(program: Program) -> list[str]:
    """What stands in the composer: the lines above the last one."""
    # Not the whole screen as text: that takes the emulator longer than the cockpit has.
    buffer, (height, width) = program.screen.buffer, (program.screen.lines, program.screen.columns)
    return [buffer[y][x].data for y in range(height - 6, height - 1) for x in range(width)]


async def _say(made: Installation, text: str) -> None:
    home = Home(made.home)
    key = home.key.read_text().strip()
    async with Client(HttpConnection(LOCAL_URL, key, socket=home.socket)) as client:
        replica = (await client.replicas.list()).replicas[0]
        async with client.events.stream(replica.id) as stream:
            await client.messages.send(replica.id, SendMessage(message=text))
            async for item in stream:
                if isinstance(item, Received) and item.event.type == "chat.turn.completed":
                    return
