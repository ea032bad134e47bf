"""The embedded service from the outside: start, status, stop, keys."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from quarterdeck import __version__
from tests.support.waiting import WAIT_SECONDS, until

ENSURE = """
import asyncio
from quarterdeck.cli.background import ensure_service
from quarterdeck.local.home import find_home
asyncio.run(ensure_service(find_home(), print))
"""


def test_nothing_runs_yet(installation):
    assert installation.qd("--version").out == f"qd {__version__}\n"
    status = installation.qd("status", "--json")
    assert (status.code, status.json["answers"]) == (3, False)
    for verb in (["auth", "key"], ["replica", "ls"], ["replica", "show", "x"]):
        ended = installation.qd(*verb)
        assert (ended.code, ended.out) == (3, "")
        assert "qd serve" in ended.err
    stopped = installation.qd("stop", "--json")
    assert (stopped.code, stopped.json["stopped"]) == (0, False)


def test_serve_answers_on_both_sockets_and_the_key_opens_it(service):
    url = service.environment["QD_TEST_URL"]
    assert httpx.get(f"{url}/v1/health", timeout=WAIT_SECONDS).json() == {
        "status": "ok",
        "version": __version__,
    }
    assert httpx.get(f"{url}/v1/environments", timeout=WAIT_SECONDS).status_code == 401
    key = service.qd("auth", "key").out.strip()
    answer = httpx.get(
        f"{url}/v1/environments", headers={"Authorization": f"Bearer {key}"}, timeout=WAIT_SECONDS
    )
    assert answer.status_code == 200
    assert stat.S_IMODE((service.home / "service" / "key").stat().st_mode) == 0o600
    assert service.qd("auth", "key", "--json").json == {"key": key}


def test_another_service_on_one_home_is_refused(service):
    second = service.qd("serve")
    assert second.code == 1
    assert "runs already" in second.err
    assert "Traceback" not in second.err


@pytest.mark.long
def test_a_port_in_use_is_refused(service, tmp_path):
    port = service.environment["QD_TEST_URL"].rpartition(":")[2]
    other = service.qd(
        "serve", "--listen", f"127.0.0.1:{port}", QUARTERDECK_HOME=str(tmp_path / "o")
    )
    assert other.code == 1
    assert f"Port {port}" in other.err


def test_addresses_that_are_none(installation):
    for address in ("nowhere", "127.0.0.1:port", "127.0.0.1:99999", ":80", "unix:"):
        ended = installation.qd("serve", "--listen", address)
        assert ended.code == 2, address
        assert address in ended.err


def test_advertised_addresses_that_are_none(installation):
    for address in (
        "nowhere",
        "unix:",
        "unix:here",
        "ftp://a",
        "http://",
        "http://a/b",
        "http://[",
    ):
        ended = installation.qd("serve", "--advertise", address)
        assert (ended.code, "is not a valid service URL" in ended.err) == (2, True), address
        assert address in ended.err


def test_stop_ends_it_and_leaves_nothing(service):
    pid = service.pid
    stopped = service.qd("stop", "--json")
    assert (stopped.code, stopped.json) == (0, {"stopped": True, "pid": pid})
    assert not (service.home / "service" / "qd.sock").exists()
    assert service.qd("status").code == 3


def test_ctrl_c_ends_serve_in_order(installation):
    process = installation.start("serve", "--json")
    assert process.stdout is not None
    json.loads(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    assert not (installation.home / "service" / "qd.sock").exists()


def _serves_until_interrupted(installation, *arguments):
    """Starts the service and ends it in order."""
    process = installation.start("serve", "--json", *arguments)
    assert process.stdout is not None
    told = process.stdout.readline()
    if told:
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    return bool(told and json.loads(told)["ready"]), err


@pytest.mark.long
def test_a_lost_master_key_is_replaced_on_request_only(installation):
    assert _serves_until_interrupted(installation)[0]
    key = installation.home / "service" / "master.key"
    kept = key.read_text()
    assert _serves_until_interrupted(installation, "--new-key")[0] is False
    assert key.read_text() == kept
    key.write_text("damaged")
    refused, why = _serves_until_interrupted(installation)
    assert (refused, "qd serve --new-key" in why) == (False, True)
    assert _serves_until_interrupted(installation, "--new-key")[0]
    assert key.read_text() not in (kept, "damaged")
    assert _serves_until_interrupted(installation)[0]


@pytest.mark.long
def test_several_at_once_start_one_service_that_outlives_them(installation):
    def ensure(_):
        done = subprocess.run(
            [sys.executable, "-c", ENSURE],
            env=installation.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(ensure, range(4)))
    assert "".join(told).count("Starting the service.") == 1
    pid = installation.pid
    assert pid is not None
    # A session of its own: the end of the terminal that started it does not reach it.
    assert os.getsid(pid) == pid
    assert installation.qd("status").code == 0
    assert installation.pid == pid
    log = installation.home / "service" / "service.log"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert "sk_" not in log.read_text()


@pytest.mark.long
def test_a_killed_service_is_started_again(installation):
    async def check():
        from quarterdeck.cli.background import answers, ensure_service, running_pid
        from quarterdeck.local.home import Home

        home = Home(installation.home)
        await ensure_service(home, lambda _: None)
        first = running_pid(home)
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await asyncio.to_thread(os.waitpid, first, 0)
        assert running_pid(home) is None
        assert not await answers(home)
        await ensure_service(home, lambda _: None)
        assert running_pid(home) not in {None, first}

    before = os.environ.copy()
    os.environ.update(installation.environment)
    try:
        asyncio.run(check())
    finally:
        os.environ.clear()
        os.environ.update(before)


def test_a_stopped_service_is_started_by_who_wants_it_not_by_an_open_cockpit(installation):
    async def check():
        from quarterdeck.cli.background import answers, running_pid, service_starter
        from quarterdeck.cli.target import find_target
        from quarterdeck.client.errors import StoppedError

        target = find_target(None)
        revive = service_starter(target)
        assert revive is not None
        assert await revive(False) is None  # nobody has stopped it
        stopped = await asyncio.to_thread(installation.qd, "stop")
        assert stopped.code == 0, stopped.err
        with pytest.raises(StoppedError, match="was stopped by qd stop"):
            await revive(False)
        assert not await answers(target.home)
        assert await revive(True) is None and await answers(target.home)
        assert not target.home.stopped.exists()
        pid = running_pid(target.home)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(until, lambda: running_pid(target.home) is None, "its end")
        await asyncio.to_thread(installation.qd, "stop")
        with pytest.raises(StoppedError):  # also when it had ended by itself
            await revive(False)

    before = os.environ.copy()
    os.environ.update(installation.environment)
    try:
        asyncio.run(check())
    finally:
        os.environ.clear()
        os.environ.update(before)


@pytest.mark.long
def test_a_service_that_cannot_start_says_why(installation):
    installation.home.mkdir()
    (installation.home / "service").mkdir()
    (installation.home / "service" / "key").mkdir()
    ended = subprocess.run(
        [sys.executable, "-c", ENSURE],
        env=installation.environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "NoServiceError: The service ended immediately." in ended.stderr
    assert "cannot be read" in ended.stderr


@pytest.mark.long
def test_a_home_that_cannot_be_written_is_told(installation):
    lock = installation.home / "service" / "start.lock"
    lock.mkdir(parents=True)  # as where the disk is read-only: it cannot be opened for writing
    ended = installation.qd("--plain")
    said = ended.out + ended.err
    assert ended.code == 3 and "Traceback" not in said
    assert f"{lock} cannot be created: Is a directory." in said and "QUARTERDECK_HOME" in said


@pytest.mark.long
def test_a_directory_named_like_the_package_is_not_imported(installation, tmp_path: Path):
    trap = tmp_path / "trap" / "quarterdeck"
    trap.mkdir(parents=True)
    (trap / "__init__.py").write_text("raise SystemExit('trapped')")
    done = subprocess.run(
        [sys.executable, "-P", "-c", ENSURE],
        env=installation.environment,
        cwd=trap.parent,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def test_the_cockpit_needs_a_terminal(installation):
    ended = installation.qd()
    assert ended.code == 2
    assert "terminal" in ended.err
    assert not installation.home.exists()
