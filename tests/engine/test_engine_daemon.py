import asyncio
import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from quarterdeck.engine.errors import EngineGoneError, EngineRefusedError
from quarterdeck.wire.engine import OpenChat
from quarterdeck.wire.terminals import CreateTerminal, ExecRequest

IDLE_RSS_LIMIT_KB = 45 * 1024


def cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def wakeups(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("voluntary_ctxt_switches:")[1].split()[0])


def resident_kb(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0])


def children_of(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def spawn_quietly(argv: list[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(argv, stderr=subprocess.DEVNULL)


async def test_idle_it_is_small_and_still(place):
    engine = await place.spawn()
    await (await place.entries()).wait("repo.discovered")
    assert resident_kb(engine.pid) <= IDLE_RSS_LIMIT_KB
    before = cpu_ticks(engine.pid), wakeups(engine.pid)
    await asyncio.sleep(2)  # nothing must happen in this time
    assert cpu_ticks(engine.pid) - before[0] == 0
    assert wakeups(engine.pid) - before[1] <= 1


@pytest.mark.long
async def test_the_socket_and_lock_are_the_owners_alone(place):
    await place.spawn()
    assert (place.run_dir / "engine.sock").stat().st_mode & 0o777 == 0o600
    assert (place.run_dir / "engine.lock").stat().st_mode & 0o777 == 0o600
    assert sorted(p.name for p in place.run_dir.iterdir()) == [
        "engine.json",
        "engine.lock",
        "engine.sock",
    ]


@pytest.mark.long
async def test_of_many_starters_one_serves(place, wait_until):
    place.configure()
    argv = [sys.executable, "-I", "-m", "quarterdeck.engine", "--run-dir", str(place.run_dir)]
    starters = [spawn_quietly(argv) for _ in range(5)]
    try:
        await wait_until(lambda: sum(s.poll() is None for s in starters) == 1 and place.answers())
        await (await place.link()).status()
        assert sorted(s.poll() or 0 for s in starters) == [0, 3, 3, 3, 3]
    finally:
        for starter in starters:
            starter.terminate()
        for starter in starters:
            await asyncio.to_thread(starter.wait)


@pytest.mark.long
async def test_a_signal_ends_it_and_everything_in_it(place, wait_until):
    engine = await place.spawn()
    link = await place.link()
    await link.terminal_create(CreateTerminal(cols=80, rows=24))
    call = asyncio.create_task(link.exec(ExecRequest(command="echo $$ > pid; sleep 300")))
    pid = int(await wait_until(lambda: read(place.workspace / "pid")))
    children = children_of(engine.pid)
    assert len(children) == 2
    engine.terminate()
    assert await asyncio.to_thread(engine.wait, 15) == 0
    with pytest.raises(EngineGoneError):
        await call
    assert not alive([*children, pid])
    assert not (place.run_dir / "engine.sock").exists()


def read(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


@pytest.mark.long
async def test_a_configuration_that_is_none_is_told_without_its_secret(place):
    place.configure()
    (place.run_dir / "engine.json").write_text('{"secret": "hidden-words"}')
    argv = [sys.executable, "-I", "-m", "quarterdeck.engine", "--run-dir", str(place.run_dir)]
    done = await asyncio.to_thread(subprocess.run, argv, capture_output=True, text=True)
    assert done.returncode == 4
    assert "workspaceId" in done.stderr and "hidden-words" not in done.stderr


@pytest.mark.long
async def test_the_service_side_stays_light():
    code = (
        "import sys; import quarterdeck.engine.link; "
        "print([m for m in sys.modules if m.startswith('quarterdeck.engine.')])"
    )
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    names = {"link", "errors", "framing"}
    assert set(eval(done.stdout)) == {f"quarterdeck.engine.{name}" for name in names}


FULL = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from fake_agents import FakeCatalog
from quarterdeck.engine.daemon import run
resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, resource.RLIM_INFINITY))
sys.exit(run(Path(sys.argv[1]), FakeCatalog()))
"""


@pytest.mark.long
async def test_a_full_disk_refuses_messages_holds_agents_and_loses_nothing(
    place, message, wait_until, require_tool
):
    require_tool("prlimit")
    here = str(Path(__file__).parent)
    engine = await place.spawn(program=("-c", FULL, str(place.run_dir), here))
    entries, link = await place.entries(), await place.link()
    chat, other = uuid4(), uuid4()
    await link.chat_open(OpenChat(chat_id=chat, provider="fake"))
    await link.chat_open(OpenChat(chat_id=other, provider="fake"))
    await link.chat_send(message(chat, "many 100"))
    async with asyncio.timeout(60):
        while True:
            if fault := (await link.status()).journal_fault:
                break
            await asyncio.sleep(0.02)
    assert fault == "File too large"
    refused = message(other, "say not yet")
    with pytest.raises(EngineRefusedError) as told:
        await link.chat_send(refused)
    assert "disk" in told.value.message and told.value.code == "INTERNAL_ERROR"
    assert place.journal.read_bytes().endswith(b"}\n")
    held = len(entries.all)
    limit = ["prlimit", f"--pid={engine.pid}", "--fsize=unlimited:unlimited"]
    await asyncio.to_thread(subprocess.run, limit, check=True)
    await entries.wait("chat.turn.completed")
    await link.chat_send(refused)
    await entries.wait("chat.turn.completed", 2)
    assert len(entries.all) > held + 50
    assert [e.index for e in entries.all] == list(range(1, len(entries.all) + 1))
    events = [e.payload["event"] for e in entries.all if e.type == "chat.turn.delta"]
    texts = [e["payload"]["content"]["text"] for e in events if e["type"] == "acp-session_update"]
    assert texts == [*map(str, range(100)), "not", "yet"]
    assert (await link.status()).journal_fault is None


@pytest.mark.long
async def test_it_leads_a_process_group_of_its_own(place):
    engine = await place.spawn()
    assert engine.poll() is None
    assert os.getpgid(engine.pid) == engine.pid
