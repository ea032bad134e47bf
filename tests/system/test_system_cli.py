"""The verbs on a running installation: exit codes, JSON, prefixes, a watch through a kill."""

import json
import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.git import make_repository
from tests.support.installation import PROGRAM, Installation, block, runs
from tests.support.waiting import WAIT_SECONDS, until
from tests.system.conftest import installed


@pytest.fixture(scope="module")
def _made() -> Iterator[tuple[Installation, str]]:
    with installed() as made:
        made.start()
        environment = made.environment_with(made.connect(str(make_repository(made.base / "shop"))))
        yield made, made.create(environment, name="probe")


@pytest.fixture
def deck(
    _made: tuple[Installation, str], require_tool: Callable[[str], str]
) -> Iterator[Installation]:
    require_tool("bwrap")
    made, probe = _made
    yield made
    made.revive()
    for replica in made.get("/v1/replica?limit=100")["replicas"]:
        if replica["id"] != probe:  # of a test that failed, whose next try needs its name
            made.delete(replica["id"])


@pytest.fixture
def probe(_made: tuple[Installation, str]) -> str:
    """The id of the replica named `probe`."""
    return _made[1]


def lines(done: Any, code: int = 0) -> list[Any]:
    """Every line of the output as JSON."""
    assert done.returncode == code, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def told(done: Any, code: int, text: str) -> None:
    """A verb that did not do it: its exit code, and one sentence on stderr."""
    assert done.returncode == code, done.stderr
    assert any(line.startswith(("qd: ", "Usage: ")) for line in done.stderr.splitlines())
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_0_done(deck: Installation, probe: str) -> None:
    done = deck.qd("replica", "exec", "probe", "--", "echo", "hi there")
    assert (done.returncode, done.stdout, done.stderr) == (0, "hi there\n", "")


@pytest.mark.long
def test_1_refused_or_failed(deck: Installation, probe: str) -> None:
    told(deck.qd("replica", "show", "nobody"), 1, "There is no replica 'nobody'.")
    told(deck.qd("replica", "exec", "probe", "--", "exit 3"), 1, "exit status 3")
    told(
        deck.qd("replica", "create", "--name", "probe", "--environment", "global"),
        1,
        "has this name already",
    )
    told(
        deck.qd("replica", "send", "--wait", "probe", block("kill -9 $PPID")),
        1,
        "was killed by signal 9",
    )
    assert deck.turn(probe, block("true"))["stopReason"] == "end_turn"


@pytest.mark.long
def test_2_usage(deck: Installation) -> None:
    told(deck.qd("replica", "exec", "--timeout", "51", "probe", "--", "true"), 2, "timeout")
    told(deck.qd("replica", "create", "--name", "two words"), 2, "contains white space")
    told(deck.qd("replica", "send", "probe", "  "), 2, "The message is empty.")
    told(deck.qd("replica", "rm", "probe"), 2, "stdin is not a terminal")
    told(deck.qd("nothing"), 2, "nothing")


def test_3_unreachable(deck: Installation, tmp_path: Path) -> None:
    elsewhere = {"QUARTERDECK_HOME": str(tmp_path)}
    told(deck.qd("replica", "ls", **elsewhere), 3, "No service runs")
    nobody = {"QD_URL": "http://127.0.0.1:9", "QD_API_KEY": "sk_x"}
    told(deck.qd("replica", "ls", **nobody), 3, "127.0.0.1:9")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_key_that_is_wrong(deck: Installation) -> None:
    wrong = {"QD_URL": f"http://127.0.0.1:{deck.port}", "QD_API_KEY": "sk_wrong"}
    told(deck.qd("replica", "ls", **wrong), 1, "This key is not valid.")


def follow(deck: Installation, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*PROGRAM, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=deck.environment,
        cwd=deck.base,
    )


def read_until(process: "subprocess.Popen[str]", text: str) -> str:
    """What the process prints, up to a text."""
    assert process.stdout is not None
    got = ""

    def more() -> bool:
        nonlocal got
        ready, _, _ = select.select([process.stdout], [], [], 0.1)
        if ready:
            got += os.read(process.stdout.fileno(), 1 << 16).decode(errors="replace")
        return text in got

    until(more, f"{text!r} in what was printed")
    return got


@pytest.mark.long
def test_130_interrupted(deck: Installation, probe: str) -> None:
    process = follow(deck, "replica", "watch", "probe", "--json", "--after", "0")
    read_until(process, "engine.ready")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 130
    assert "Traceback" not in said


@pytest.mark.long
def test_a_watch_through_a_killed_service(deck: Installation, probe: str) -> None:
    process = follow(deck, "replica", "watch", "probe", "--json", "--after", "0")
    got = read_until(process, "engine.ready")
    sent = deck.send(probe, block("echo begun; while ! test -e /tmp/go; do sleep 0.02; done"))
    got += read_until(process, r'"begun\n"')
    deck.kill()
    deck.start()
    deck.run(probe, "touch /tmp/go")
    assert deck.result(probe, sent["message_id"])["stopReason"] == "end_turn"
    deck.run(probe, "rm /tmp/go")
    last = deck.send(probe, block("echo the-very-last"))["message_id"]
    deck.result(probe, last)
    newest = deck.replica(probe)["log_index"]
    got += read_until(process, f'"index": {newest}')
    process.send_signal(signal.SIGINT)
    rest, said = process.communicate(timeout=WAIT_SECONDS)
    indices = [json.loads(line)["index"] for line in (got + rest).splitlines()]
    assert indices == list(range(1, len(indices) + 1))
    assert indices[-1] >= newest
    assert "The line is up again." in said


@pytest.mark.long
def test_every_verb_speaks_json(deck: Installation, probe: str) -> None:
    (status,) = lines(deck.qd("status", "--json"))
    assert status["answers"] is True
    (doctor,) = lines(deck.qd("doctor", "--json"))
    assert isinstance(doctor, dict)
    (key,) = lines(deck.qd("auth", "key", "--json"))
    assert deck.key in key.values()
    (listed,) = lines(deck.qd("replica", "ls", "--json"))
    assert "probe" in [one["name"] for one in listed["replicas"]]
    (shown,) = lines(deck.qd("replica", "show", "--json", "probe"))
    assert shown["replica"]["id"] == probe
    made = lines(
        deck.qd(
            *("replica", "create", "--json", "--wait", "--name", "other"),
            *("--environment", "global", "-m", block("echo hi")),
        )
    )
    assert made[0]["replica"]["name"] == "other"
    assert made[-1]["type"] == "chat.turn.completed"
    sent = lines(deck.qd("replica", "send", "--json", "--wait", "other", block("echo again")))
    assert sent[0]["status"] in ("sent", "queued")
    assert sent[-1]["type"] == "chat.turn.completed"
    (ran,) = lines(deck.qd("replica", "exec", "--json", "other", "--", "exit 4"), 1)
    assert ran["exit_code"] == 4
    watched = lines(deck.qd("replica", "watch", "--json", "--once", "--after", "0", "other"))
    assert [one["index"] for one in watched] == list(range(1, len(watched) + 1))
    (slept,) = lines(deck.qd("replica", "sleep", "--json", "other"))
    assert slept == {"success": True, "replicas": [made[0]["replica"]["id"]]}
    (woken,) = lines(deck.qd("replica", "wake", "--json", "other"))
    assert woken["status"] == "waking"
    (gone,) = lines(deck.qd("replica", "rm", "--yes", "--json", "other"))
    assert gone["success"] is True


@pytest.mark.long
def test_names_by_their_beginning(deck: Installation, probe: str) -> None:
    assert lines(deck.qd("replica", "show", "--json", "pro"))[0]["replica"]["id"] == probe
    assert lines(deck.qd("replica", "show", "--json", probe[:9]))[0]["replica"]["id"] == probe
    other = deck.create(name="prose")
    told(deck.qd("replica", "show", "pro"), 2, "'pro' fits ")
    assert lines(deck.qd("replica", "show", "--json", "prob"))[0]["replica"]["id"] == probe
    told(deck.qd("replica", "rm", "--yes", "pr"), 2, "fits ")
    assert deck.qd("replica", "rm", "--yes", "pros").returncode == 0
    deck.check_gone(other)
    assert runs(deck.engine(probe))
