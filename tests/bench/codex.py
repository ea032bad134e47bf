"""Codex through an engine, beside codex driven by hand: what the engine adds to a turn, and what a
piece of an answer costs from codex to the journal.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from quarterdeck.agents.presets import load_presets
from quarterdeck.engine.link import EngineLink
from quarterdeck.wire.engine import DeliverMessage, EngineConfig, JournalEntry, OpenChat
from tests.bench.table import LeftOutError, Row, cpu_seconds
from tests.real_agents.codex.place import PROGRAMS, configuration, programs, quiet_environment

TURN = "shell echo hello > greeting; cat greeting\nsay Done."
TURNS = 31
PIECES = 10_000
SECRET = "of this benchmark"
WAIT_SECONDS = 60.0


def codex_rows() -> list[Row]:
    """The rows; codex comes from `make agents`."""
    if not (PROGRAMS / "codex").exists():
        raise LeftOutError("for codex is not installed: make agents (which needs npm)")
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as base, _model() as url:
        async with _by_hand(Path(base, "hand"), url) as hand, _engine(Path(base), url) as engine:
            times = await _side_by_side(hand, engine)
            return [*_turn_rows(*times), *await _piece_rows(engine)]


async def _side_by_side(hand: "Hand", engine: "Engined") -> tuple[list[float], list[float]]:
    for one in (hand, engine):
        await one.turn(TURN)
    by_hand: list[float] = []
    by_engine: list[float] = []
    for _ in range(TURNS):
        by_hand.append(await hand.turn(TURN))
        by_engine.append(await engine.turn(TURN))
    return by_hand, by_engine


def _turn_rows(by_hand: list[float], by_engine: list[float]) -> list[Row]:
    hand, engine = statistics.median(by_hand), statistics.median(by_engine)
    note = f"{TURNS} turns each, in turn; a turn runs one command"
    return [
        Row("codex: a turn, driven by hand", hand * 1000, "ms", note=note),
        Row("codex: a turn through the engine", engine * 1000, "ms"),
        Row("codex: what the engine adds to a turn", (engine / hand - 1) * 100, "%", 10),
    ]


async def _piece_rows(engine: "Engined") -> list[Row]:
    before = cpu_seconds(engine.pid)
    await engine.turn(f"stream {PIECES}")
    spent = cpu_seconds(engine.pid) - before
    lost = PIECES - engine.pieces(PIECES)
    return [
        Row(f"codex: pieces lost of {PIECES}", lost, "", 0),
        Row("codex: a piece from agent to journal", spent / PIECES * 1000, "ms", 0.2, "CPU"),
    ]


@contextmanager
def _model() -> Iterator[str]:
    """The address of a model server in a process of its own."""
    command = [sys.executable, "-m", "tests.real_agents.model"]
    process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.communicate(timeout=WAIT_SECONDS)


class Hand:
    """A client of the app-server that does only what a turn needs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin and process.stdout
        self._to, self._from = process.stdin, process.stdout
        self._number = 0
        self._thread = ""

    async def open(self, directory: Path) -> None:
        client = {"name": "bench", "title": "Bench", "version": "0"}
        able = {"experimentalApi": True, "requestAttestation": False}  # as the engine asks for it
        await self._ask("initialize", {"clientInfo": client, "capabilities": able})
        self._write({"method": "initialized"})
        place = {"cwd": str(directory), "sandbox": "danger-full-access"}
        opened = await self._ask("thread/start", {**place, "approvalPolicy": "on-request"})
        self._thread = opened["thread"]["id"]

    async def turn(self, text: str) -> float:
        begun = time.perf_counter()
        said = [{"type": "text", "text": text, "text_elements": []}]
        self._write(
            {"id": 0, "method": "turn/start", "params": {"threadId": self._thread, "input": said}}
        )
        while (await self._read()).get("method") != "turn/completed":
            pass
        return time.perf_counter() - begun

    async def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        self._write({"id": self._number, "method": method, "params": params})
        while (message := await self._read()).get("id") != self._number:
            pass
        return message["result"]

    def _write(self, message: dict[str, Any]) -> None:
        self._to.write(json.dumps(message).encode() + b"\n")

    async def _read(self) -> dict[str, Any]:
        return json.loads(await self._from.readline())


@asynccontextmanager
async def _by_hand(base: Path, url: str) -> AsyncIterator[Hand]:
    home, directory = _prepared(base, url)
    process = await asyncio.create_subprocess_exec(
        str(programs() / "codex"),
        *load_presets()["codex"].command[1:],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=directory,
        env=quiet_environment(home),
        limit=1 << 24,
    )
    hand = Hand(process)
    await hand.open(directory)
    yield hand
    assert process.stdin
    process.stdin.close()
    await process.wait()


class Engined:
    """One chat of a running engine."""

    def __init__(self, link: EngineLink, pid: int, chat: UUID) -> None:
        self.pid = pid
        self._link = link
        self._chat = chat
        self._entries: asyncio.Queue[JournalEntry] = asyncio.Queue()
        self._heard: list[JournalEntry] = []

    async def follow(self) -> None:
        async for entry in self._link.journal():
            self._entries.put_nowait(entry)

    async def turn(self, text: str) -> float:
        self._heard = []
        begun = time.perf_counter()
        await self._link.chat_send(
            DeliverMessage(chat_id=self._chat, message_id=uuid4(), text=text)
        )
        async with asyncio.timeout(WAIT_SECONDS):
            while not self._heard or self._heard[-1].type != "chat.turn.completed":
                self._heard.append(await self._entries.get())
        return time.perf_counter() - begun

    def pieces(self, most: int) -> int:
        """How many pieces of the last answer came, up to the first that is not in its place."""
        events = [one.payload.get("event", {}).get("payload", {}) for one in self._heard]
        chunks = [one for one in events if one.get("sessionUpdate") == "agent_message_chunk"]
        texts = [one["content"]["text"] for one in chunks]
        return next((n for n in range(most) if texts[n : n + 1] != [f"{n} "]), most)


@asynccontextmanager
async def _engine(base: Path, url: str) -> AsyncIterator[Engined]:
    home, directory = _prepared(base / "engined", url)
    # The same variables on both sides: some make codex read certificates for every request.
    variables = quiet_environment(home)
    run, state = base / "run", base / "state"
    run.mkdir()
    state.mkdir()
    config = EngineConfig(
        workspace_id=uuid4(),
        secret=SECRET,
        workspace_dir=str(directory),
        state_dir=str(state),
        run_dir=str(run),
        isolation="bubblewrap",  # as in a sandbox: codex has none of its own
        environment=variables,
    )
    (run / "engine.json").write_text(config.model_dump_json())
    command = ("-I", "-m", "quarterdeck.engine", "--run-dir", str(run))
    process = await asyncio.create_subprocess_exec(sys.executable, *command, env=variables)
    try:
        link = await _linked(run / "engine.sock")
        chat = uuid4()
        await link.chat_open(OpenChat(chat_id=chat, provider="codex"))
        engined = Engined(link, process.pid, chat)
        following = asyncio.create_task(engined.follow())
        yield engined
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await link.close()
    finally:
        process.terminate()
        await process.wait()


def _prepared(base: Path, url: str) -> tuple[Path, Path]:
    home, directory = base / "home", base / "workspace"
    (home / ".codex").mkdir(parents=True)
    directory.mkdir()
    (home / ".codex" / "config.toml").write_text(configuration(url))
    return home, directory


async def _linked(socket: Path) -> EngineLink:
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            try:
                streams = await asyncio.open_unix_connection(str(socket))
            except OSError:
                await asyncio.sleep(0.02)
            else:
                return await EngineLink.open(*streams, SECRET, after=0)
