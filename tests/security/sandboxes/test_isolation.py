"""What a program in a sandbox reaches of the kernel: sockets, keys, processes, system calls.

Run as root and, by `tests/sandboxes/test_sandboxes_root.py`, as an ordinary user.
"""

import ctypes
import errno
import json
import os
import resource
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from uuid import uuid4

import pytest

from quarterdeck.sandboxes.interpreter import needed_directories
from quarterdeck.sandboxes.kernel import filter_program, find_hardening, landlock_version
from quarterdeck.sandboxes.launch import LAUNCHER, LaunchSpec
from quarterdeck.sandboxes.layout import places_of
from quarterdeck.sandboxes.processes import sandbox_user
from tests.sandboxes.conftest import Bench

PYTHON = sys.executable
KEYCTL, ADD_KEY = (250, 248) if os.uname().machine == "x86_64" else (219, 217)
DESCRIBE, SEARCH, SESSION = 6, 10, -3

REACH = """
import ctypes, json, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)

def connected(name, kind):
    with socket.socket(socket.AF_UNIX, kind) as caller:
        try:
            caller.connect(name)
        except OSError as e:
            return e.errno
    return 0

def called(number, *arguments):
    result = libc.syscall(number, *arguments)
    return ctypes.get_errno() if result < 0 else 0

wanted = json.loads(sys.argv[1])
found = {"abstract": connected("\\0" + wanted["abstract"], socket.SOCK_STREAM)}
found["datagrams"] = connected("\\0" + wanted["datagrams"], socket.SOCK_DGRAM)
found["calls"] = {name: called(*rest) for name, rest in wanted["calls"].items()}
own = "\\0" + wanted["own"]
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(own)
    listener.listen()
    found["own"] = connected(own, socket.SOCK_STREAM)
found["families"] = []
for family in wanted["families"]:
    try:
        socket.socket(family, socket.SOCK_DGRAM).close()
        found["families"].append(0)
    except OSError as e:
        found["families"].append(e.errno)
import fcntl
with open("leased", "w+") as file:
    found["leases"] = []
    for command in (1024, 1040):
        try:
            fcntl.fcntl(file, command, fcntl.F_WRLCK)
        except OSError as e:
            found["leases"].append(e.errno)
    fcntl.fcntl(file, fcntl.F_SETLK, b"\\0" * 64)  # other commands are not concerned
found["keys"] = open("/proc/keys").read()
found["score"] = int(open("/proc/self/oom_score_adj").read())
try:
    os.close(os.open("/dev/tty", os.O_RDWR))
    found["terminal"] = True
except OSError:
    found["terminal"] = False
print(json.dumps(found))
"""

CALLS_X86 = {
    "keyctl": [250, SEARCH, SESSION, 0, 0, 0],
    "add_key": [248, 0, 0, 0, 0, 0],
    "request_key": [249, 0, 0, 0, 0],
    "bpf": [321, 0, 0, 0],
    "perf_event_open": [298, 0, 0, 0, 0, 0],
    "userfaultfd": [323, 1],
    "kexec_load": [246, 0, 0, 0, 0],
    "kexec_file_load": [320, 0, 0, 0, 0, 0],
    "init_module": [175, 0, 0, 0],
    "finit_module": [313, 0, 0, 0],
    "delete_module": [176, 0, 0],
    "syslog": [103, 10, 0, 0],
    "open_by_handle_at": [304, 0, 0, 0],
    "io_uring_setup": [425, 1, 0],
    "fsopen": [430, 0, 0],
    "fspick": [433, 0, 0, 0],
    "x32": [0x40000000 + 39],
}
WITHOUT = {"io_uring_setup", "fsopen", "fspick", "x32"}

FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
OTHER_FAMILIES = (socket.AF_VSOCK, socket.AF_PACKET, socket.AF_ALG, socket.AF_CAN, 44)  # XDP

requires_x86 = pytest.mark.skipif(
    os.uname().machine != "x86_64", reason="the numbers of system calls are those of x86_64"
)


async def reach(bench: Bench, workspace: str, **wanted: object) -> dict[str, object]:
    (bench.home.workspaces / workspace / "files" / "reach.py").write_text(REACH)
    told = await bench.said(workspace, f"{PYTHON} reach.py '{json.dumps(wanted)}'")
    return json.loads(told)


@pytest.fixture
def key():
    """A secret in the session keyring of whoever starts the service."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.syscall(KEYCTL, 1, None) > 0, "a session keyring of the test's own"
    secret = f"qd-test-{uuid4()}"
    description = secret.encode()
    assert libc.syscall(ADD_KEY, b"user", description, b"x", ctypes.c_size_t(1), SESSION) > 0
    return secret


def outside() -> tuple[socket.socket, socket.socket, str]:
    name = str(uuid4())
    listener, datagrams = (
        socket.socket(socket.AF_UNIX),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
    )
    listener.bind(f"\0{name}")
    listener.listen()
    datagrams.bind(f"\0{name}-datagrams")
    return listener, datagrams, name


@pytest.mark.long
@requires_x86
async def test_nothing_of_the_kernel_is_reached_that_is_not_needed(walled, key):
    found = await check_reach(walled)
    if sandbox_user(None).drop:  # else they are keys of the same user, whose names are shown
        assert key not in str(found["keys"])


@pytest.mark.long
@requires_x86
async def test_nothing_more_is_reached_without_bubblewrap(bare):
    """The names of the user's keys are seen then, and nothing reads them."""
    await check_reach(bare)


CONFINED = """
import json, os
found = {}
for name in filter(str.isdecimal, os.listdir("/proc")):
    lines = open(f"/proc/{name}/status").read().splitlines()
    status = dict(line.split(":\\t", 1) for line in lines if ":\\t" in line)
    found[name] = [status[field] for field in ("NoNewPrivs", "Seccomp", "CapEff", "CapPrm")]
print(json.dumps(found))
"""


async def test_every_process_of_a_sandbox_is_restricted(walled: Bench) -> None:
    """Also those that only wait: on kernels without Landlock, programs inside may trace them."""
    workspace = await walled.started()
    (places_of(walled.home, workspace).files / "confined.py").write_text(CONFINED)
    found = json.loads(await walled.said(workspace, f"{PYTHON} confined.py"))
    assert {"1", "2"} < found.keys()  # bubblewrap's own, and what waits for the engine
    none = "0" * 16
    wrong = {name: one for name, one in found.items() if one != ["1", "2", none, none]}
    assert wrong == {}


NAMESPACES = "cd /proc/self/ns; for name in cgroup ipc mnt pid user uts; do readlink $name; done"


def own_namespaces() -> list[str]:
    return subprocess.check_output(["sh", "-c", NAMESPACES], text=True).split()


async def test_a_sandbox_has_namespaces_of_its_own(walled: Bench) -> None:
    """But for the network and the time, which it shares."""
    found = [own_namespaces()]
    for _ in range(2):
        found.append((await walled.said(await walled.started(), NAMESPACES)).split())
    assert [len(one) for one in found] == [6, 6, 6]
    assert len({name for one in found for name in one}) == 18


@pytest.mark.skipif(not Path("/etc/ssl/private").is_dir(), reason="this machine keeps none there")
async def test_private_keys_of_the_machine_are_not_shown(walled: Bench) -> None:
    assert await walled.said(await walled.started(), "ls -A /etc/ssl/private") == ""


LIMITS = "import resource; print(*resource.getrlimit(resource.RLIMIT_CORE))"
SERIAL = f"import ctypes; print(ctypes.CDLL(None).syscall({KEYCTL}, 0, {SESSION}, 0))"


def launched(code: str, before: str = "", shell: str = "sh") -> str:
    """What a program prints that the launcher starts without a filter and without bubblewrap."""
    user = sandbox_user(None)
    shown = [str(path) for path in needed_directories(Path("/nowhere"))]
    drop = {"uid": user.uid, "gid": user.gid, "expose": shown} if user.drop else {}
    spec = LaunchSpec([PYTHON, "-I", "-S", "-c", code], {}, "/", 1024, **drop)
    launcher = [PYTHON, "-I", "-S", str(LAUNCHER)]
    groups = {"extra_groups": [4, 27]} if user.drop else {}
    done = subprocess.run(
        [shell, "-c", f'{before} exec 3>/dev/null; exec "$@"', "sh", *launcher],
        input=json.dumps(asdict(spec)),
        capture_output=True,
        text=True,
        **groups,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.usefixtures("key")
def test_every_sandbox_has_a_session_keyring_of_its_own() -> None:
    """Asked without the filter, which refuses the question."""
    own = ctypes.CDLL(None).syscall(KEYCTL, 0, SESSION, 0)
    serials = {own, int(launched(SERIAL)), int(launched(SERIAL))}
    assert min(serials) > 0
    assert len(serials) == 3


def test_descriptors_that_the_service_left_open_are_closed() -> None:
    """As a shell or a library may leave them."""
    said = launched("import os; print(sorted(os.listdir('/proc/self/fd')))", "exec 4</etc 9</etc;")
    assert said == "['0', '1', '2', '3']"  # the last is the list's own


def test_groups_of_root_are_left() -> None:
    groups = launched("import os; print(os.getgroups())")
    assert groups == ("[]" if sandbox_user(None).drop else str(os.getgroups()))


def test_no_core_is_dumped() -> None:
    """Also where the service's own limit is another one."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard == 0 and os.geteuid() != 0:
        pytest.skip("the limit is 0 here, and only root may raise it")
    assert launched(LIMITS, "ulimit -c unlimited || ulimit -c 1;") == "0 0"


PRIORITIES = "import resource as r; print(r.getrlimit(r.RLIMIT_RTPRIO), r.getrlimit(r.RLIMIT_NICE))"


def test_no_program_runs_before_all_others() -> None:
    """Also where the service's user may have such priorities, as members of a group for sound do."""
    raised = "ulimit -r 50 && ulimit -e 30"
    if subprocess.run(["bash", "-c", raised], capture_output=True).returncode != 0:
        pytest.skip("such a limit cannot be raised here")
    assert launched(PRIORITIES, f"{raised};", shell="bash") == "(0, 0) (0, 0)"


def test_files_are_not_made_for_everybody_and_a_high_score_stays_the_highest() -> None:
    """Whatever the service itself was started with."""
    assert launched("import os; print(oct(os.umask(0)))", "umask 0;") == "0o22"
    score = "print(open('/proc/self/oom_score_adj').read())"
    assert launched(score, "echo 700 >/proc/self/oom_score_adj;") == "1000"


def own_score() -> int:
    return int(Path("/proc/self/oom_score_adj").read_text())


async def check_reach(bench: Bench) -> dict[str, object]:
    assert landlock_version() >= 6, "this machine's kernel cannot scope sockets"
    workspace = await bench.started()
    listener, datagrams, name = outside()
    with listener, datagrams:
        found = await reach(
            bench,
            workspace,
            abstract=name,
            datagrams=f"{name}-datagrams",
            own=f"{name}-own",
            calls=CALLS_X86,
            families=[*FAMILIES, *OTHER_FAMILIES],
        )
    assert (found["abstract"], found["datagrams"]) == (errno.EPERM, errno.EPERM)
    assert found["own"] == 0  # programs inside use such sockets among themselves
    expected = {call: errno.ENOSYS if call in WITHOUT else errno.EPERM for call in CALLS_X86}
    assert found["calls"] == expected
    usable, refused = [0] * len(FAMILIES), [errno.EAFNOSUPPORT] * len(OTHER_FAMILIES)
    assert found["families"] == [*usable, *refused]
    assert found["leases"] == [errno.EPERM, errno.EPERM]
    assert found["score"] == min(1000, own_score() + 500)
    assert found["terminal"] is False  # none of the host's, whose input could be written to
    isolation = await bench.driver.isolation()
    named = " ".join(gap.message for gap in isolation.gaps)
    assert "abstract" not in named
    assert "system calls" not in named
    return found


async def test_two_replicas_do_not_share_sockets_or_keys(walled):
    """Neither do a replica's engine and a command of the service in it."""
    first, second = await walled.started(), await walled.started()
    name = uuid4()
    hold = (
        "import socket,time;s=socket.socket(socket.AF_UNIX);"
        f"s.bind(chr(0)+'{name}');s.listen();print(1,flush=True);time.sleep(600)"
    )
    await walled.said(
        first, f'mkfifo up; setsid {PYTHON} -c "{hold}" > up 2>/dev/null < /dev/null & head -1 up'
    )
    caller = f"import socket;socket.socket(socket.AF_UNIX).connect(chr(0)+'{name}')"
    await walled.said(first, f'{PYTHON} -c "{caller}"')
    code, said = await walled.inside(second, f'{PYTHON} -c "{caller}"')
    assert code != 0
    assert "PermissionError" in said


@pytest.mark.long
async def test_agents_make_sandboxes_of_their_own_inside(walled, require_tool):
    """In two levels, with a process table, devices and a network of its own."""
    workspace = await walled.started()
    level = (
        "bwrap --unshare-user --unshare-pid --unshare-net --unshare-ipc --ro-bind / / "
        "--proc /proc --dev /dev --tmpfs /tmp --bind /workspace /workspace --die-with-parent --"
    )
    told = await walled.said(workspace, f"{level} {level} sh -c 'touch /workspace/made; id -u'")
    assert told == await walled.said(workspace, "id -u")
    assert await walled.said(workspace, "ls made") == "made"
    debugger = (
        "import ctypes,os,signal\n"
        "child = os.fork()\n"
        "if child == 0: signal.pause()\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "assert libc.ptrace(16, child, 0, 0) == 0, ctypes.get_errno()\n"
        "os.waitpid(child, 0); os.kill(child, 9)\n"
    )
    (walled.home.workspaces / workspace / "files" / "trace.py").write_text(debugger)
    await walled.said(workspace, f"{PYTHON} trace.py")


@pytest.fixture
def bystander() -> Iterator[int]:
    """A process outside, of the user who is inside: nothing but the sandbox is in the way."""
    user = sandbox_user(None)
    change = {"user": user.uid, "group": user.gid} if user.drop else {}
    with subprocess.Popen(["sleep", "600"], **change) as process:
        yield process.pid
        assert process.poll() is None
        process.kill()


@pytest.mark.long
async def test_processes_of_the_machine_are_not_traced_or_signalled(bare, bystander):
    """Without bubblewrap they are visible."""
    workspace = await bare.started()
    code, said = await bare.inside(workspace, f"kill {bystander}")
    assert code != 0
    assert "not permitted" in said
    trace = (
        "import ctypes; libc = ctypes.CDLL(None, use_errno=True); "
        f"assert libc.ptrace(16, {bystander}, 0, 0) == 0, ctypes.get_errno()"
    )
    code, said = await bare.inside(workspace, f'{PYTHON} -c "{trace}"')
    assert said.endswith(f"AssertionError: {errno.EPERM}")


@pytest.fixture
def setuid_bubblewrap(
    require_tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A setuid bubblewrap, the first on the PATH."""
    if os.geteuid() != 0:
        pytest.skip("only root makes a setuid program")
    # Not on a file system that is mounted nosuid, as /dev/shm is.
    with tempfile.TemporaryDirectory(prefix="qd-", dir="/var/tmp") as directory:
        Path(directory).chmod(0o755)
        program = Path(shutil.copy(require_tool("bwrap"), directory))
        program.chmod(0o4755)
        monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
        yield program


async def test_a_setuid_bubblewrap_keeps_replicas_apart(
    setuid_bubblewrap: Path, bench: Bench
) -> None:
    isolation = await bench.driver.isolation()
    if isolation.mode == "none":  # newer versions refuse to be setuid
        assert isolation.note
        assert "setuid" in isolation.note
        assert isolation.note.endswith(f"Run: chmod u-s {setuid_bubblewrap}")
        return
    assert any("/tmp" in gap.message for gap in isolation.gaps)
    workspace = await bench.started()
    said = await bench.said(workspace, "id -u; cd /tmp && echo ok > file && cat file")
    assert said == f"{sandbox_user(None).uid}\nok"


def test_gaps_of_other_machines_are_named(tmp_path, monkeypatch):
    program = tmp_path / "bwrap"
    program.write_text("")
    program.chmod(0o4755)
    hardening, gaps = find_hardening(str(program))
    assert (hardening.filter, hardening.scoped) == (None, False)
    assert [gap.next_step.endswith(f"chmod u-s {program}") for gap in gaps] == [True]
    program.chmod(0o755)
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    monkeypatch.setattr("quarterdeck.sandboxes.kernel.landlock_version", lambda: 4)
    monkeypatch.setattr("quarterdeck.sandboxes.kernel._kernel", lambda: (5, 10))
    monkeypatch.setattr("quarterdeck.sandboxes.kernel.may_refuse_descriptors", lambda: False)
    hardening, gaps = find_hardening(str(program))
    assert (hardening.filter, hardening.scoped, hardening.counted) == (None, False, False)
    for text, word in zip(gaps, ("riscv64", "abstract", "open files", "processes"), strict=True):
        assert word in text.message
        assert text.next_step


def test_the_filter_of_every_machine_is_well_formed():
    """Jumps stay in the program, and every way through it ends with an answer."""
    for machine in ("x86_64", "aarch64"):
        program = filter_program(machine)
        assert program is not None
        codes = [program[place] for place in range(0, len(program), 8)]
        for index, code in enumerate(codes):
            if code in (0x15, 0x35):
                jumps = program[index * 8 + 2 : index * 8 + 4]
                assert all(index + 1 + jump < len(codes) for jump in jumps)
        assert codes[-1] == 0x06
    assert filter_program("sparc") is None


EPERM, ENOSYS, UNSUPPORTED = errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT
REFUSED: dict[str, tuple[int, tuple[int, ...]]] = {
    "keyctl": (EPERM, (250, 288, 219, 311)),
    "add_key": (EPERM, (248, 286, 217, 309)),
    "request_key": (EPERM, (249, 287, 218, 310)),
    "bpf": (EPERM, (321, 357, 280, 386)),
    "perf_event_open": (EPERM, (298, 336, 241, 364)),
    "userfaultfd": (EPERM, (323, 374, 282, 388)),
    "kexec_load": (EPERM, (246, 283, 104, 347)),
    "kexec_file_load": (EPERM, (320, -1, 294, 401)),
    "init_module": (EPERM, (175, 128, 105, 128)),
    "finit_module": (EPERM, (313, 350, 273, 379)),
    "delete_module": (EPERM, (176, 129, 106, 129)),
    "syslog": (EPERM, (103, 103, 116, 103)),
    "open_by_handle_at": (EPERM, (304, 342, 265, 371)),
    "io_uring_setup": (ENOSYS, (425,) * 4),
    "io_uring_enter": (ENOSYS, (426,) * 4),
    "io_uring_register": (ENOSYS, (427,) * 4),
    "fsopen": (ENOSYS, (430,) * 4),
    "fsconfig": (ENOSYS, (431,) * 4),
    "fsmount": (ENOSYS, (432,) * 4),
    "fspick": (ENOSYS, (433,) * 4),
}
"""By the kernel's tables of x86_64, i386, aarch64 and arm; -1: that one has no such call."""
X86_64, I386, AARCH64, ARM, RISCV64 = 0xC000003E, 0x40000003, 0xC00000B7, 0x40000028, 0xC00000F3
SOCKET, FCNTL = (41, 359, 198, 281), ((72,), (55, 221), (25,), (55, 221))
PAIR = (53, 360, 199, 288)
WRITE = (1, 4, 64, 4)


def answer(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    """Run the filter as the kernel does: the error of a call, 0 when it is allowed."""
    data = struct.pack("=iIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    value, place = 0, 0
    while True:
        code, then, otherwise, constant = struct.unpack_from("=HBBI", program, place * 8)
        place += 1
        if code == 0x20:
            (value,) = struct.unpack_from("=I", data, constant)
        elif code in (0x15, 0x35):
            place += (
                then if (value == constant if code == 0x15 else value >= constant) else otherwise
            )
        else:
            assert code == 0x06
            assert constant & 0xFFFF0000 in (0x7FFF0000, 0x00050000)
            return constant & 0xFFFF if constant & 0xFFFF0000 == 0x00050000 else 0


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_refuses_each_call_to_programs_of_each_kind(machine: str) -> None:
    """Also those that cannot be tried here: of another machine, of 32 bits, of kernels without them."""
    program = filter_program(machine)
    assert program is not None
    kinds = {X86_64: 0, I386: 1} if machine == "x86_64" else {AARCH64: 2, ARM: 3}
    for architecture, column in kinds.items():
        for name, (error, numbers) in REFUSED.items():
            if numbers[column] >= 0:
                assert answer(program, architecture, numbers[column]) == error, name
        assert answer(program, architecture, WRITE[column]) == 0
        # A family of sockets and a command of fcntl are 32 bits, whatever the register has above.
        for above in (0, 1 << 32):
            answers = [answer(program, architecture, SOCKET[column], n + above) for n in range(64)]
            allowed = {family for family, error in enumerate(answers) if error == 0}
            assert allowed == {int(family) for family in FAMILIES}
            assert set(answers) == {0, UNSUPPORTED}
            pairs = [answer(program, architecture, PAIR[column], n + above) for n in range(64)]
            assert [n for n, error in enumerate(pairs) if error == 0] == [int(socket.AF_UNIX)]
            assert set(pairs) == {0, UNSUPPORTED}
            for number in FCNTL[column]:
                for command in (1024, 1040):
                    assert answer(program, architecture, number, 3, command + above) == EPERM
                assert answer(program, architecture, number, 3, 1025) == 0
    for architecture in {X86_64, I386, AARCH64, ARM, RISCV64} - kinds.keys():
        assert answer(program, architecture, 1) == ENOSYS
    if machine == "x86_64":
        assert answer(program, X86_64, 0x40000000) == ENOSYS  # x32
        assert answer(program, X86_64, 0x40000000 - 1) == 0
