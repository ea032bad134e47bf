"""Root and ordinary users: who runs inside, and when the driver refuses."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.errors import IsolationError
from quarterdeck.sandboxes.interpreter import needed_directories
from quarterdeck.sandboxes.launch import LAUNCHER
from quarterdeck.sandboxes.launcher import closed_ancestor
from quarterdeck.sandboxes.process import ProcessDriver
from quarterdeck.sandboxes.processes import SPARE_UID, _system_entries, sandbox_user

ROOT = Path(__file__).parents[2]
AGAIN = "QD_TESTS_AS_A_USER"
ASK = """
import asyncio, sys
from pathlib import Path
from quarterdeck.local.home import Home
from quarterdeck.sandboxes.errors import IsolationError
from quarterdeck.sandboxes.process import ProcessDriver

async def main():
    try:
        print(await ProcessDriver(Home(Path(sys.argv[1]))).isolation())
    except IsolationError as e:
        print("REFUSED", e, e.details)

asyncio.run(main())
"""

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become other users")


@only_root
def test_root_hands_sandboxes_to_a_spare_user():
    user = sandbox_user(None)
    assert (user.uid, user.gid, user.drop) == (SPARE_UID, SPARE_UID, True)


@only_root
@pytest.mark.parametrize("name", ["root", "0", "no-such-user-here"])
def test_users_that_cannot_be(name):
    with pytest.raises(IsolationError, match="QD_SANDBOX_USER"):
        sandbox_user(name)


@only_root
@pytest.mark.parametrize(("name", "uid"), [("nobody", 65534), ("43210", 43210)])
async def test_a_configured_user(home, engine, monkeypatch, name, uid):
    monkeypatch.setenv("QD_SANDBOX_USER", name)
    driver = ProcessDriver(home, engine=engine)
    assert str(uid) in (await driver.isolation()).user
    workspace = "configured"
    await driver.provision(workspace, [], "qd/one", print)
    await driver.start(workspace)
    try:
        reader, writer = await driver.connect(workspace)
        writer.write(json.dumps("id -u").encode() + b"\n")
        assert json.loads(await reader.readline()) == [0, f"{uid}\n"]
        writer.close()
        await writer.wait_closed()
    finally:
        await driver.destroy(workspace)


@only_root
async def test_root_without_the_right_to_mount_refuses(home, require_tool):
    weak = [require_tool("setpriv"), "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    command = [*weak, sys.executable, "-c", ASK, str(home.root)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True)
    assert done.stdout.startswith("REFUSED"), done.stdout + done.stderr
    assert "ordinary user" in done.stdout
    assert "unshare the mount namespace" in done.stdout


@only_root
async def test_homes_that_are_closed_to_others(bench, tmp_path):
    """The whole way to the workspace is open to root alone, and stays so for the rest."""
    tmp_path.chmod(0o700)
    workspace = await bench.started()
    code, said = await bench.inside(workspace, f"ls {tmp_path} 2>&1; id -u; touch ~/x")
    assert code == 0, said
    assert str(SPARE_UID) in said
    assert tmp_path.stat().st_mode & 0o777 == 0o700


@only_root
def test_which_directory_keeps_a_user_out():
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        top = Path(name)
        top.chmod(0o755)
        inner = top / "a/b/c"
        inner.mkdir(parents=True)
        (top / "a/b").chmod(0o700)
        assert closed_ancestor(str(inner), 4321, 4321) == str(top / "a/b")
        os.chown(top / "a/b", 4321, 0)
        assert closed_ancestor(str(inner), 4321, 4321) is None
        (top / "a/b").chmod(0o001)
        assert closed_ancestor(str(inner), 4321, 4321) == str(top / "a/b")


@only_root
def test_the_launcher_never_runs_anything_as_root(tmp_path):
    said = _launch(["/bin/echo", "ran"], tmp_path, uid=None)
    assert said.returncode == 70
    assert "ran" not in said.stdout
    assert "root" in said.stderr


@only_root
def test_a_right_of_root_that_stays_is_an_error() -> None:
    """Where the service was started with the bit that keeps capabilities."""
    code = (
        "import ctypes, encodings.ascii; from quarterdeck.sandboxes.launcher import become\n"
        f"ctypes.CDLL(None).prctl(8, 1, 0, 0, 0); become({SPARE_UID}, {SPARE_UID})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "root's rights could not be dropped" in done.stderr


@only_root
@pytest.mark.parametrize("order", [1, -1])
def test_a_program_that_runs_is_shown_beside_its_directory(tmp_path, order):
    """An interpreter is asked for by itself and lies in a directory that is shown whole."""
    tmp_path.chmod(0o700)
    directory = tmp_path / "python/bin"
    directory.mkdir(parents=True)
    program = Path(shutil.copy2("/bin/sleep", directory / "sleep"))
    own = [str(path) for path in needed_directories(Path("/nowhere"))]
    shown = [*own, *[str(directory.parent), str(program)][::order]]
    running = subprocess.Popen([program, "60"])
    try:
        said = _launch([str(program), "0"], Path("/"), SPARE_UID, shown)
    finally:
        running.kill()
        running.wait()
    assert said.returncode == 0, said.stderr


@only_root
def test_files_that_their_owner_may_not_read_are_archived_and_copied(tmp_path):
    tree = tmp_path / "tree"
    (tree / "shut").mkdir(parents=True)
    (tree / "shut" / "in").write_text("inside")
    (tree / "secret").write_text("secret")
    for path in (tmp_path, tree, tree / "shut", tree / "shut" / "in", tree / "secret"):
        os.chown(path, SPARE_UID, SPARE_UID)
    (tree / "secret").chmod(0)
    (tree / "shut").chmod(0)
    tree.chmod(0o400)
    work = """
import sys
from pathlib import Path
from quarterdeck.sandboxes.archive.copying import copy
from quarterdeck.sandboxes.archive.packing import pack, unpack
base = Path(sys.argv[1])
pack(base / "tree", base / "packed", frozenset())
unpack(base / "packed", base / "again")
copy(base / "tree", base / "copied")
"""
    shown = [str(path) for path in [*needed_directories(Path("/nowhere")), tmp_path]]
    done = _launch([sys.executable, "-c", work, str(tmp_path)], Path("/"), SPARE_UID, shown)
    assert done.returncode == 0, done.stderr
    assert tree.stat().st_mode & 0o777 == 0o400
    assert (tmp_path / "copied").stat().st_mode & 0o777 == 0o400
    for name in ("tree", "again", "copied"):
        assert (tmp_path / name / "secret").stat().st_mode & 0o777 == 0
        assert (tmp_path / name / "shut").stat().st_mode & 0o777 == 0
        assert (tmp_path / name / "shut" / "in").read_text() == "inside"


@pytest.mark.long
@only_root
@pytest.mark.skipif(AGAIN in os.environ, reason="this is the second round")
@pytest.mark.timeout(300)
def test_everything_again_as_an_ordinary_user(tmp_path):
    """The tests of what runs, in a process that is no longer root."""
    base = tmp_path / "again"
    base.mkdir()
    os.chown(base, SPARE_UID, SPARE_UID)
    files = [
        f"sandboxes/test_sandboxes_{name}.py"
        for name in ("isolation", "lifecycle", "guarded", "forks")
    ]
    files.append("security/sandboxes")
    paths = [str(ROOT / "tests" / name) for name in files]
    tests = [sys.executable, "-m", "pytest", *paths, "-q", "-x", "-n", "0"]
    options = ["-p", "no:cacheprovider", "--basetemp", str(base / "tests"), "--rootdir", str(ROOT)]
    needed = [
        str(path) for path in [*needed_directories(Path("/nowhere")), base, ROOT] if path.exists()
    ]
    said = _launch([*tests, *options], ROOT, SPARE_UID, needed, {AGAIN: "1", "HOME": str(base)})
    assert said.returncode == 0, said.stdout[-6000:] + said.stderr


def _launch(
    command: list[str],
    directory: Path,
    uid: int | None,
    expose: list[str] | None = None,
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    spec = {
        "command": command,
        "environment": {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
        | {name: os.environ[name] for name in ("CI",) if name in os.environ}
        | (environment or {}),
        "directory": str(directory),
        "bubblewrap": None,
        "options": [],
        "uid": uid,
        "gid": uid,
        "expose": expose or [],
        "open_files": 1024,
        "processes": None,
        "filter": None,
        "scoped": False,
        "groups": [],
    }
    launcher = f"exec {sys.executable} -I -S {LAUNCHER} 3>/dev/null"
    return subprocess.run(
        ["sh", "-c", launcher], input=json.dumps(spec), capture_output=True, text=True
    )


def test_users_of_the_machine_are_not_listed_inside(tmp_path: Path) -> None:
    """Only those that programs expect, without the user who is inside, and without members of groups."""
    listed = tmp_path / "listed"
    names = ("root:x:0:0:root:/root:/bin/sh", "games:x:999:9::/:/bin/sh", "ann:x:1000:1000:Ann::")
    listed.write_text("\n".join([*names, "nobody:x:65534:65534:::", "own:x:500:5:::", "odd:x", ""]))
    assert [line.partition(":")[0] for line in _system_entries(listed, 500)] == [
        "root",
        "games",
        "nobody",
    ]
    listed.write_text("adm:secret:4:ann,bob\nann:x:1000:\n")
    assert _system_entries(listed, 500) == ["adm:secret:4:"]


async def test_the_user_inside_is_told(home):
    isolation = await ProcessDriver(Home(home.root)).isolation()
    assert str(sandbox_user(None).uid) in isolation.user
