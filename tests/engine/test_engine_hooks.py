"""Hooks: order, time, failure, logs, events, and what survives the engine's death."""

import asyncio
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from quarterdeck.engine.link import EngineRefusedError
from quarterdeck.engine.setup.hooks import Hook, HookRunner
from quarterdeck.wire.engine import OpenChat
from quarterdeck.wire.git_state import EngineRepository
from quarterdeck.wire.setup import ClaimWorkspace, HookKind, HookLog, Setup, SetupHook
from tests.engine.conftest import Entries, Place
from tests.support.waiting import eventually


def hook(kind: str, name: str, script: str) -> SetupHook:
    return SetupHook.model_validate({"kind": kind, "name": name, "script": script})


def logs(entries: Entries) -> list[HookLog]:
    told = [one.payload["log"] for one in entries.all if "log" in one.payload]
    return [HookLog.model_validate(one) for one in told]


async def state(place: Place) -> str:
    setup = (await (await place.link()).status()).setup
    assert setup is not None
    return setup.phase


async def finished(place: Place) -> Entries:
    entries = await place.entries()
    await entries.wait("engine.ready")
    return entries


def repository(place: Place, name: str, **hooks: str) -> EngineRepository:
    path = place.root / "workspace" / name
    (path / ".quarterdeck/hooks").mkdir(parents=True)
    for kind, script in hooks.items():
        (path / ".quarterdeck/hooks" / f"{kind}.sh").write_text(script)
    return EngineRepository(id=uuid4(), name=name, path=str(path), default_branch="main")


async def test_hooks_run_in_the_contracts_order(place: Place) -> None:
    place.environment["WHERE"] = "log"
    note = 'echo "$0 $PWD $WHERE" | sed "s:.*/::" >> $HOME/order; pwd'
    place.setup = Setup(
        hooks=[
            hook("start", "global", "echo start global >> $HOME/order"),
            hook("warm", "global", "echo warm global >> $HOME/order"),
            hook("start", "environment", "echo start environment >> $HOME/order"),
            hook("warm", "environment", "echo warm environment $WHERE >> $HOME/order"),
        ]
    )
    place.repositories = [
        repository(place, "shop", warm="echo warm shop $PWD >> $HOME/order", start=note)
    ]
    await place.start()
    entries = await finished(place)
    lines = (place.root / "home/order").read_text().splitlines()
    shop = place.root / "workspace/shop"
    assert lines[:5] == [
        "warm global",
        "warm environment log",
        f"warm shop {shop}",
        "start global",
        "start environment",
    ]
    assert lines[5].startswith("shop log")
    assert [(one.hook_type, one.hook_name, one.exit_code) for one in logs(entries)] == [
        ("warm", "global", 0),
        ("warm", "environment", 0),
        ("warm", "repository:shop", 0),
        ("start", "global", 0),
        ("start", "environment", 0),
        ("start", "repository:shop", 0),
    ]
    types = [type for type in entries.types() if type.startswith("hooks.")]
    assert types[0] == "hooks.started"
    assert types.count("hooks.started") == types.count("hooks.completed") == 2
    first = await entries.wait("hooks.completed")
    assert first.payload == {
        "running": [],
        "completed": ["global", "environment", "repository:shop"],
    }
    assert entries.types().index("engine.ready") > entries.types().index("hooks.completed")
    told = await entries.wait("repo.discovered")
    assert told.payload["repos"][0]["startHooksCompleted"] is True


async def test_warm_hooks_run_once_and_start_hooks_at_each_boot(place: Place) -> None:
    place.setup = Setup(
        hooks=[hook("warm", "w", "echo w >> $HOME/ran"), hook("start", "s", "echo s >> $HOME/ran")]
    )
    for boot in range(1, 4):
        process = await place.spawn()
        # The journal tells of the boots before, too: it is this one's end that counts.
        await (await place.entries()).wait("engine.ready", boot)
        process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(process.wait)
    ran = (place.root / "home/ran").read_text().split()
    assert ran.count("w") == 1
    assert ran.count("s") == 3


@pytest.mark.long
async def test_a_warm_hook_that_was_cut_off_runs_again_and_those_before_it_do_not(
    place: Place,
) -> None:
    place.setup = Setup(
        hooks=[
            hook("warm", "first", "echo first >> $HOME/ran"),
            hook("warm", "second", "echo second >> $HOME/ran; [ -e $HOME/go ] || sleep 1000"),
        ]
    )
    process = await place.spawn()
    ran = place.root / "home/ran"
    await eventually(lambda: ran.exists() and "second" in ran.read_text())
    process.send_signal(signal.SIGKILL)
    await asyncio.to_thread(process.wait)
    (place.root / "home/go").touch()
    await place.spawn()
    await finished(place)
    assert ran.read_text().split() == ["first", "second", "second"]


async def test_a_failing_hook_ends_the_boot_and_tells_why(place: Place) -> None:
    place.setup = Setup(
        hooks=[
            hook("warm", "first", "echo no such tool >&2; exit 3"),
            hook("warm", "second", "touch $HOME/second"),
        ]
    )
    await place.start()
    entries = await place.entries()
    failed = await entries.wait("hooks.failed")
    await entries.wait("error")
    assert failed.payload["hookName"] == "first"
    reason = "The warm hook 'first' ended with code 3. Its last lines: no such tool"
    assert failed.payload["error"] == reason
    report = await (await place.link()).status()
    assert report.setup is not None and report.setup.failure == reason
    assert not (place.root / "home/second").exists()
    assert "engine.ready" not in entries.types()
    (log,) = logs(entries)
    assert (log.exit_code, log.timed_out, log.output) == (3, False, "no such tool\n")


async def test_a_hook_is_stopped_at_its_limit_with_all_it_started(place: Place) -> None:
    script = "echo begun; sleep 1000 & echo $! > $HOME/pid; wait"
    place.setup = Setup(hooks=[hook("start", "slow", script)], hook_seconds=0.5)
    await place.start()
    entries = await place.entries()
    failed = await entries.wait("hooks.failed")
    assert "timed out and was stopped" in failed.payload["error"]
    (log,) = logs(entries)
    assert (log.exit_code, log.timed_out, log.output) == (None, True, "begun\n")
    assert log.duration_ms is not None and 500 <= log.duration_ms < 60_000
    child = int((place.root / "home/pid").read_text())
    await eventually(lambda: not Path(f"/proc/{child}/cmdline").exists() or not _command(child))


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


async def test_a_log_keeps_the_last_hundred_thousand_characters(place: Place) -> None:
    script = "yes é | head -c 450000; echo the end"
    place.setup = Setup(hooks=[hook("warm", "loud", script)])
    await place.start()
    entries = await finished(place)
    (log,) = logs(entries)
    assert len(log.output) == 100_000
    assert log.output.endswith("the end\n")
    assert log.output_truncated
    assert log.output_total_chars == 300_008
    pieces = [one.payload["output"] for one in entries.all if one.type == "hooks.progress"]
    assert 0 < len("".join(pieces)) <= 100_000


async def test_output_is_told_while_the_hook_runs(place: Place) -> None:
    place.setup = Setup(
        hooks=[hook("warm", "w", "echo hello; until [ -e $HOME/go ]; do sleep 0.02; done")]
    )
    await place.start()
    entries = await place.entries()
    told = await entries.wait("hooks.progress")
    assert told.payload == {
        "running": ["w"],
        "completed": [],
        "hookName": "w",
        "output": "hello\n",
    }
    assert (await (await place.link()).status()).hooks_running
    (place.root / "home/go").touch()
    await entries.wait("engine.ready")


async def test_what_a_start_hook_leaves_running_can_go_on_printing(place: Place) -> None:
    server = "(while [ ! -e $HOME/go ]; do sleep 0.02; done; echo late; touch $HOME/late) &"
    place.setup = Setup(hooks=[hook("start", "serve", server)])
    await place.start()
    await finished(place)
    (place.root / "home/go").touch()
    await eventually(lambda: (place.root / "home/late").exists())


async def test_a_hash_bang_chooses_the_interpreter(place: Place) -> None:
    place.setup = Setup(hooks=[hook("warm", "w", "#!/usr/bin/env python3\nprint(6 * 7)\n")])
    await place.start()
    (log,) = logs(await finished(place))
    assert log.output == "42\n"


async def test_messages_wait_until_the_hooks_are_done(place: Place, agents, message) -> None:
    place.setup = Setup(hooks=[hook("start", "s", "until [ -e $HOME/go ]; do sleep 0.02; done")])
    await place.start(agents.FakeCatalog())
    entries = await place.entries()
    link = await place.link()
    chat = uuid4()
    await link.chat_open(OpenChat(chat_id=chat, provider="fake"))
    await link.chat_send(message(chat, "say hello"))
    await entries.wait("chat.turn.accepted")
    assert "chat.turn.started" not in entries.types()
    (place.root / "home/go").touch()
    await entries.wait("chat.turn.completed")
    assert entries.types().index("hooks.completed") < entries.types().index("chat.turn.started")


@pytest.mark.long
async def test_a_held_workspace_waits_for_its_owner(place: Place) -> None:
    place.setup = Setup(
        hooks=[hook("warm", "w", "touch $HOME/w"), hook("start", "s", "echo s >> $HOME/s")],
        hold=True,
    )
    process = await place.spawn()
    entries = await place.entries()
    await eventually(lambda: any(one.payload.get("held") for one in entries.all))
    assert (place.root / "home/w").exists() and not (place.root / "home/s").exists()
    assert await state(place) == "held"
    link = await place.link()
    await link.claim(ClaimWorkspace(branch="qd/mine"))
    await entries.wait("engine.ready")
    await link.claim(ClaimWorkspace(branch="qd/mine"))
    process.send_signal(signal.SIGKILL)
    await asyncio.to_thread(process.wait)
    await place.spawn()  # claimed for good, whatever its configuration says
    await eventually(lambda: (place.root / "home/s").read_text().count("s") == 2)


async def test_a_workspace_that_is_not_prepared_cannot_be_claimed(place: Place) -> None:
    place.setup = Setup(hooks=[hook("warm", "w", "sleep 1000")], hold=True)
    await place.start()
    await (await place.entries()).wait("hooks.started")
    with pytest.raises(EngineRefusedError, match="not prepared"):
        await (await place.link()).claim(ClaimWorkspace(branch="x"))


async def test_an_end_while_a_hook_is_being_started_leaves_no_process(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = HookRunner(short_dir / "scripts", {}, 60)
    begun, go = threading.Event(), threading.Event()
    started: list[subprocess.Popen[bytes]] = []
    spawn = runner._spawn

    def slowly(*of: Any) -> "subprocess.Popen[bytes]":
        started.append(spawn(*of))
        begun.set()
        go.wait()
        return started[0]

    monkeypatch.setattr(runner, "_spawn", slowly)

    async def tell(_: str) -> None:
        pass

    asked = Hook(HookKind.WARM, "slow", "sleep 600", short_dir)
    running = asyncio.create_task(runner.run(asked, tell))
    await asyncio.to_thread(begun.wait)
    running.cancel()
    await asyncio.sleep(0)
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert started[0].returncode is not None
    with pytest.raises(ProcessLookupError):
        os.kill(started[0].pid, 0)
    runner.close()
