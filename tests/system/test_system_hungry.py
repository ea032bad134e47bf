"""A replica that uses up processes, memory and disk: the service and another replica's turn go on.

The service and its replicas have a machine of their own, as far as they can use it up: a small disk, and
a control group with little memory.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

import pytest

from quarterdeck.sandboxes.cgroups import Hierarchy, find_groups
from tests.support.disks import small_disk
from tests.support.git import make_repository
from tests.support.installation import Follower, Installation, block, remove, runs
from tests.support.waiting import until

MEMORY = 1 << 30
MEGABYTES = 600
WITHIN = {"control groups": "", "no control groups": "umount -a -l -t cgroup,cgroup2;"}


@pytest.fixture
def memory() -> Iterator[Path]:
    """A control group that is the machine's memory for all that the service starts."""
    found = [one for one in find_groups().hierarchies if "memory" in one.controllers]
    if os.geteuid() != 0 or not found:
        pytest.skip("control groups cannot be made here")
    group = Path(mkdtemp(prefix="qd-test-", dir=found[0].base))
    limit(found[0], group)
    yield group
    until(lambda: removed(group), "the end of all in the control group")


def removed(group: Path) -> bool:
    """Whether a control group is gone, with those inside and all their processes."""
    for path in sorted(group.rglob("cgroup.procs"), reverse=True):
        for pid in path.read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        with suppress(OSError):  # its processes have not ended yet
            path.parent.rmdir()
    return not group.exists()


def limit(hierarchy: Hierarchy, group: Path) -> None:
    if hierarchy.unified:
        (group / "memory.max").write_text(str(MEMORY))
    else:
        (group / "memory.limit_in_bytes").write_text(str(MEMORY))


@pytest.fixture(params=WITHIN.values(), ids=WITHIN)
def own(
    request: pytest.FixtureRequest, memory: Path, require_tool: Callable[[str], str]
) -> Iterator[Installation]:
    require_tool("bwrap")
    base = Path(mkdtemp(prefix="qd-system-"))
    base.chmod(0o755)
    (base / "home").mkdir()
    inside = f'echo $$ > {memory}/cgroup.procs; {request.param} exec "$@"'
    wrapper = [require_tool("unshare"), "--mount", "sh", "-c", inside, "sh"]
    with small_disk(base / "home", MEGABYTES, require_tool):
        made = Installation(base, wrapper=wrapper)
        try:
            made.start()
            yield made
            made.delete_all()
            made.stop()
        finally:
            made.stop()
            made.kill_all()
    remove(base)


HOG = "kept = []\nwhile True: kept.append(bytearray(64 << 20))"
BOMB = "while :; do (sleep 600 &) || break; done"


@pytest.mark.long
def test_one_hungry_replica(own: Installation) -> None:
    environment = own.environment_with(own.connect(str(make_repository(own.base / "shop"))))
    hungry, other = own.create(environment), own.create(environment)
    service, engine = own.pid, own.engine(other)
    follower = Follower(own, other)
    lines = "n=0; until test -e /tmp/enough; do n=$((n + 1)); echo line $n; sleep 0.1; done"
    turn = own.send(other, block(lines))
    until(lambda: follower.printed("line 1"), "the other's turn")
    limited = own.get(f"/v1/replica/{hungry}?include=environment")["replica"]["environment"]
    print("limited by size:", limited["size_limited"])

    def goes_on(what: str) -> None:
        """The service answers, the other's turn prints, and its files can be written."""
        start = time.monotonic()
        assert own.get(f"/v1/replica/{other}")["replica"]["status"] == "active"
        print(f"{what}: the service answered in {time.monotonic() - start:.2f} s")
        seen = follower.indices[-1]
        until(lambda: follower.indices[-1] > seen, f"the other's output: {what}")
        assert own.run(other, "echo x > /workspace/small; cat /workspace/small")["output"] == "x\n"
        assert (own.pid, own.engine(other)) == (service, engine)

    def light(script: str) -> None:
        own.run(hungry, f"setsid sh -c '{script}' >/dev/null 2>&1 </dev/null & echo lit")

    light(f'python3 -c "{HOG}"; touch /workspace/hog-ended')
    until((own.place(hungry) / "files/hog-ended").exists, "the end of what used up memory")
    goes_on("memory")
    light("cat /dev/zero > /workspace/much; echo > /workspace/filler-ended; sleep 600")
    until((own.place(hungry) / "files/filler-ended").exists, "the end of what filled the disk")
    goes_on("disk")
    heard = Follower(own, hungry)
    until(lambda: heard.has("error"), "what the replica's chat says")
    heard.end()
    own.run(hungry, "rm /workspace/much")
    light(BOMB)
    until(lambda: forked(own, hungry) > 500, "many processes")
    goes_on("processes")
    own.run(other, "touch /tmp/enough")
    assert own.result(other, turn["message_id"])["stopReason"] == "end_turn"
    follower.end()
    own.post(f"/v1/workspaces/{hungry}/sleep")
    own.reach(hungry, "sleeping")
    assert not [pid for pid in own.processes(hungry) if runs(pid)]
    assert own.turn(hungry, block("echo again"))["stopReason"] == "end_turn"


MAKER = "import itertools\nfor n in itertools.count(): open(f'/workspace/{n}', 'x').close()"


@pytest.mark.long
def test_one_that_makes_ever_new_files(own: Installation) -> None:
    environment = own.environment_with(own.connect(str(make_repository(own.base / "shop"))))
    maker, other = own.create(environment), own.create(environment)
    heard = Follower(own, maker)
    own.run(maker, f'setsid python3 -c "{MAKER}" >/dev/null 2>&1 </dev/null & echo lit')
    until(lambda: heard.has("error"), "the end of what makes files")
    heard.end()
    assert "created most of the new ones" in str(heard.events)
    until(lambda: not [pid for pid in own.processes(maker) if runs(pid)], "the replica's end")
    assert own.run(other, "echo x > /workspace/small; cat /workspace/small")["output"] == "x\n"
    # Its files stay, so nobody can make others until somebody removes them.
    assert own.ask("DELETE", f"/v1/replica/{maker}").status_code == 200
    until(lambda: not own.place(maker).exists(), "the end of its files")
    assert own.turn(other, block("echo on"))["stopReason"] == "end_turn"
    own.create(environment)


def forked(own: Installation, id: str) -> int:
    return len(own.processes(id))
