"""A killed service: who follows a replica misses nothing and sees nothing twice."""

import os
import signal
import subprocess
import sys

import pytest

from tests.support.program import Program

RESTART = """
import asyncio
from quarterdeck.cli.background import ensure_service
from quarterdeck.local.home import find_home
asyncio.run(ensure_service(find_home(), print))
"""

pytestmark = pytest.mark.timeout(180)


def restart(installation):
    subprocess.run(
        [sys.executable, "-c", RESTART], env=installation.environment, check=True, timeout=60
    )


def kill(installation):
    pid = installation.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


@pytest.mark.long
def test_a_turn_is_followed_through_a_killed_service(deck):
    # It does not end before the service is back, however long that takes.
    wait = "while [ $n = 30 ] && ! [ -e ~/go ]; do sleep 0.02; done"
    slow = f"```\nrm -f ~/go; for n in $(seq 40); do echo line-$n; sleep 0.1; {wait}; done\n```"
    follower = deck.start("replica", "watch", "probe", "--json", "--after", "0")
    turn = deck.start("replica", "send", "probe", slow, "--wait")
    assert turn.stdout is not None and follower.stdout is not None
    while "line-3" not in turn.stdout.readline():
        pass
    kill(deck)
    restart(deck)
    deck.qd("replica", "exec", "probe", "touch ~/go")
    out, err = turn.communicate(timeout=60)
    assert turn.returncode == 0, err
    assert [f"  line-{n}\n" in out for n in range(4, 41)] == [True] * 37
    assert out.count("  line-20\n") == 1
    assert "The line is up again." in err
    newest = deck.qd("replica", "show", "probe", "--json").json["replica"]["log_index"]
    indexes = []
    while not indexes or indexes[-1] < newest:
        indexes.append(int(follower.stdout.readline().partition(":")[2].partition(",")[0]))
    assert indexes == list(range(1, newest + 1))
    follower.send_signal(signal.SIGINT)
    follower.communicate(timeout=60)


@pytest.mark.long
def test_an_attached_terminal_goes_on_through_a_killed_service(deck):
    argv = [*deck.argv, "replica", "attach", "probe", "--new"]
    with Program(argv, environment=deck.environment) as program:
        program.wait_for("shop$")
        program.type("clear; state=ke''pt; echo before\r")
        program.wait_for("before\n")
        kill(deck)
        program.type("echo $state-while-down\r")
        restart(deck)
        program.wait_for("kept-while-down")
        assert program.text.count("kept-while-down") == 1
        program.type("exit\r")
        assert program.finish(60) == 0
