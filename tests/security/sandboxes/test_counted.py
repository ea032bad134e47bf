"""What the kernel counts for a user: one replica gets a part of it, also in user namespaces of its own."""

import json
import resource
import sys

import pytest

from quarterdeck.local.processes import PROC
from quarterdeck.sandboxes.layout import places_of
from tests.sandboxes.conftest import Bench

TAKE = """
import ctypes, json, os, resource, sys
libc = ctypes.CDLL(None, use_errno=True)

class Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ("flags", "most", "size", "now", "a", "b", "c", "d")]

def timer(number):
    return libc.timer_create(0, None, ctypes.byref(ctypes.c_void_p()))

def queue(number):
    wanted = ctypes.byref(Attributes(most=10, size=1024))
    return libc.mq_open(b"/%d-%d" % (os.getpid(), number), os.O_CREAT | os.O_RDWR, 0o600, wanted)

def watcher(number):
    return libc.inotify_init()

take = {"timer": timer, "queue": queue, "watcher": watcher}[sys.argv[1]]
read, write = os.pipe()
go, gone = os.pipe()
for _ in range(3):
    if os.fork() == 0:
        assert libc.unshare(0x10000000) == 0
        taken = 0
        while taken < 200_000 and take(taken) >= 0:
            taken += 1
        os.write(write, b"%8d" % taken)
        os.read(go, 1)
        os._exit(0)
print(sum(int(os.read(read, 8)) for _ in range(3)))
os.write(gone, b"xxx")
"""


async def taken(bench: Bench, what: str) -> int:
    """How many a program inside gets in three user namespaces of its own."""
    workspace = await bench.started()
    (places_of(bench.home, workspace).files / "take.py").write_text(TAKE)
    return int(await bench.said(workspace, f"{sys.executable} take.py {what}"))


async def test_timers_and_pending_signals_are_left_to_others(walled: Bench) -> None:
    limit, _ = resource.getrlimit(resource.RLIMIT_SIGPENDING)
    if limit == resource.RLIM_INFINITY:
        pytest.skip("they have no limit here")
    assert 0 < await taken(walled, "timer") <= limit // 4


async def test_message_queues_are_left_to_others(walled: Bench) -> None:
    """Their bytes are counted, for messages that there is room for."""
    limit, _ = resource.getrlimit(resource.RLIMIT_MSGQUEUE)
    if limit == resource.RLIM_INFINITY:
        pytest.skip("they have no limit here")
    assert 0 < await taken(walled, "queue") * 10 * 1024 <= limit // 4


async def test_inotify_is_left_to_others(walled: Bench) -> None:
    if not walled.driver._runtime.fork_server._usable:  # pyright: ignore[reportPrivateUsage]
        pytest.skip("only where engines are forked")
    limits = {
        name: int((PROC / "sys/user" / name).read_text())
        for name in ("max_inotify_instances", "max_inotify_watches")
    }
    assert 0 < await taken(walled, "watcher") <= limits["max_inotify_instances"] // 2
    workspace = await walled.started()
    for name, limit in limits.items():
        assert int(await walled.said(workspace, f"cat /proc/sys/user/{name}")) == limit // 2


@pytest.mark.parametrize("name", ["RLIMIT_SIGPENDING", "RLIMIT_MSGQUEUE"])
async def test_a_program_inside_does_not_raise_its_share(walled: Bench, name: str) -> None:
    limit, _ = resource.getrlimit(getattr(resource, name))
    workspace = await walled.started()
    script = f"import json, resource; print(json.dumps(resource.getrlimit(resource.{name})))"
    (places_of(walled.home, workspace).files / "limits.py").write_text(script)
    share = limit if limit == resource.RLIM_INFINITY else limit // 4
    said = json.loads(await walled.said(workspace, f"{sys.executable} limits.py"))
    assert said == [share, share]
