"""Workspaces that begin at the head of a pull request, also of one from a fork."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import uuid4

import pytest

from quarterdeck.local.repository import LocalRepository
from quarterdeck.sandboxes.errors import CloneError, UnknownBaseError
from quarterdeck.sandboxes.port import RepositorySource, StartPoint, UncommittedCommit
from tests.sandboxes.conftest import Bench

PULL, MERGE = "refs/pull/7/head", "refs/merge-requests/7/head"
Git = Callable[..., str]


def pushed(git: Git, checkout: Path, text: str, ref: str = PULL) -> str:
    """A commit that no branch has, as a host keeps the head of a pull request from a fork."""
    before = git("rev-parse", "HEAD", at=checkout)
    (checkout / "file.txt").write_text(text)
    git("commit", "--quiet", "-am", text, at=checkout)
    head = git("rev-parse", "HEAD", at=checkout)
    git("update-ref", ref, head, at=checkout)
    git("reset", "--quiet", "--hard", before, at=checkout)
    return head


def entries(directory: Path) -> list[Path]:
    return list(directory.rglob("*"))


async def begun(
    bench: Bench, source: RepositorySource, start: StartPoint | None
) -> tuple[Path, str]:
    """The clone of a new workspace, and the commit that it began with."""
    workspace = str(uuid4())
    found = replace(source, start=start)
    [made] = await bench.driver.provision(workspace, [found], "qd/one", bench.reported.append)
    assert made.base_commit is not None
    return bench.home.workspaces / workspace / "files" / made.name, made.base_commit


@pytest.mark.parametrize("ref", [PULL, MERGE])
async def test_the_head_of_a_fork_is_checked_out(
    bench: Bench, checkout: Path, git: Git, ref: str
) -> None:
    source = await bench.connect(checkout)
    head = pushed(git, checkout, "from a fork", ref)
    clone, base = await begun(bench, source, StartPoint((PULL, MERGE)))
    assert base == head == git("rev-parse", "HEAD", at=clone)
    assert (clone / "file.txt").read_text() == "from a fork"
    assert git("symbolic-ref", "HEAD", at=clone) == "refs/heads/qd/one"
    assert git("rev-parse", "origin/trunk", at=clone) == git("rev-parse", "HEAD", at=checkout)
    assert "quarterdeck" not in (clone / ".git/packed-refs").read_text()


async def test_it_begins_at_the_commit_that_is_named(
    bench: Bench, checkout: Path, git: Git
) -> None:
    source = await bench.connect(checkout)
    seen = pushed(git, checkout, "as it was approved")
    git("branch", "kept", seen, at=checkout)
    git("checkout", "--quiet", "kept", at=checkout)
    later = pushed(git, checkout, "pushed since")
    git("checkout", "--quiet", "trunk", at=checkout)
    git("branch", "-D", "kept", at=checkout)
    clone, base = await begun(bench, source, StartPoint((PULL,), seen))
    assert base == seen != later
    assert (clone / "file.txt").read_text() == "as it was approved"


async def test_a_commit_that_was_pushed_away_is_not_replaced_by_another(
    bench: Bench, checkout: Path, git: Git
) -> None:
    source = await bench.connect(checkout)
    pushed(git, checkout, "another")
    with pytest.raises(CloneError, match=f"{PULL} no longer has the commit {'a' * 40}"):
        await begun(bench, source, StartPoint((PULL,), "a" * 40))


async def test_without_the_ref_there_is_no_workspace(bench: Bench, checkout: Path) -> None:
    source = await bench.connect(checkout)
    with pytest.raises(CloneError, match=f"its source has no {PULL} or {MERGE}"):
        await begun(bench, source, StartPoint((PULL, MERGE)))


async def test_one_that_need_not_be_there_leaves_the_default_branch(
    bench: Bench, checkout: Path, git: Git
) -> None:
    source = await bench.connect(checkout)
    _, base = await begun(bench, source, StartPoint((PULL,), "a" * 40, required=False))
    assert base == git("rev-parse", "HEAD", at=checkout)
    assert any("Starting from the branch trunk" in line for line in bench.reported)


@pytest.mark.parametrize(
    "ref", ["--upload-pack=touch pwned", "refs/heads/*", "refs/../x", "HEAD", "refs/heads/a:b", ""]
)
async def test_no_ref_is_an_option_or_a_pattern(
    bench: Bench, checkout: Path, ref: str, tmp_path: Path
) -> None:
    source = await bench.connect(checkout)
    with pytest.raises(CloneError, match="its source has no"):
        await begun(bench, source, StartPoint((ref,)))
    assert not any(one.name == "pwned" for one in entries(tmp_path))


@pytest.mark.long
async def test_a_base_is_a_branch_a_tag_or_a_commit(bench: Bench, checkout: Path, git: Git) -> None:
    source = await bench.connect(checkout)
    assert source.default_branch == "trunk"
    assert await bench.driver.find_base(source, "trunk") is None
    name = "fix/#1@ünï"
    head = pushed(git, checkout, "of the branch", f"refs/heads/{name}")
    git("tag", "-a", "-m", "One", "v1", "trunk", at=checkout)
    trunk = git("rev-parse", "trunk", at=checkout)
    point = await bench.driver.find_base(source, name)
    assert point == StartPoint((f"refs/heads/{name}",), branch=name)
    clone, base = await begun(bench, source, point)
    assert (base, (clone / "file.txt").read_text()) == (head, "of the branch")
    point = await bench.driver.find_base(source, "v1")
    assert point == StartPoint(("refs/tags/v1",))
    assert (await begun(bench, source, point))[1] == trunk
    point = await bench.driver.find_base(source, head[:9])
    assert point == StartPoint((), head)
    await asyncio.to_thread(checkout.rename, checkout.with_name("elsewhere"))
    assert (await begun(bench, source, point))[1] == head
    assert set(await bench.driver.branches(source)) == {"trunk", "side", name}


@pytest.mark.parametrize(
    "base", ["nothing", "abcdef1234", "trunk~0", "--all", "trunk^{tree}", "..", "HEAD", "a b"]
)
async def test_a_base_that_is_not_there_is_refused(bench: Bench, checkout: Path, base: str) -> None:
    source = await bench.connect(checkout)
    with pytest.raises(UnknownBaseError, match="has no branch, tag or commit"):
        await bench.driver.find_base(source, base)


async def test_a_base_has_to_contain_the_commit_of_the_changes(
    bench: Bench, checkout: Path, git: Git
) -> None:
    source = await bench.connect(checkout)
    before = git("rev-parse", "trunk", at=checkout)
    git("commit", "--quiet", "--allow-empty", "-m", "later", at=checkout)
    later = git("rev-parse", "trunk", at=checkout)
    git("branch", "behind", before, at=checkout)
    find = bench.driver.find_base
    assert await find(source, "trunk", before) == StartPoint(("refs/heads/trunk",), before)
    assert await find(source, "trunk", later) == StartPoint(("refs/heads/trunk",), later)
    for commit in (later, "a" * 40):
        with pytest.raises(UnknownBaseError, match=f"behind does not contain .* {commit[:10]}"):
            await find(source, "behind", commit)


async def test_a_pull_request_has_to_be_there(bench: Bench, checkout: Path, git: Git) -> None:
    source = await bench.connect(checkout)
    pushed(git, checkout, "from a fork")
    await bench.driver.require_ref(source, (PULL, MERGE))
    with pytest.raises(UnknownBaseError, match="has no refs/pull/8/head"):
        await bench.driver.require_ref(source, ("refs/pull/8/head",))
    await asyncio.to_thread(checkout.rename, checkout.with_name("elsewhere"))
    with pytest.raises(CloneError, match="cannot be reached"):
        await bench.driver.require_ref(source, (PULL,))


async def uncommitted(checkout: Path) -> UncommittedCommit:
    """The changes of a checkout, as the person's side sends them."""
    taken = await (await LocalRepository.find(checkout)).snapshot(1 << 20)
    assert taken is not None
    header, _, pack = taken.bundle.partition(b"\n\n")
    return UncommittedCommit(header.splitlines()[2].split()[0].decode(), pack)


@pytest.mark.long
async def test_uncommitted_changes_are_uncommitted_again(
    bench: Bench, checkout: Path, git: Git
) -> None:
    (checkout / "removed").write_text("removed")
    git("add", ".", at=checkout)
    git("commit", "--quiet", "-m", "one more", at=checkout)
    source = await bench.connect(checkout)
    head = git("rev-parse", "HEAD", at=checkout)
    (checkout / "removed").unlink()
    (checkout / "file.txt").write_text("edited")
    (checkout / "file.txt").chmod(0o755)
    (checkout / "new").mkdir()
    (checkout / "new/binary").write_bytes(b"\0\xff")
    (checkout / "link").symlink_to("new/binary")
    changes = {source.id: await uncommitted(checkout)}
    source = replace(source, start=StartPoint((), head, branch="side"))
    workspace = str(uuid4())
    given = (workspace, [source], "qd/one", bench.reported.append)
    [made] = await bench.driver.provision(*given, changes)
    assert (made.base_commit, made.base_branch) == (head, "side")
    clone = bench.home.workspaces / workspace / "files" / made.name
    await bench.driver.write_config(workspace, "{}")
    await bench.driver.start(workspace)
    status = ("status", "--porcelain", "--untracked-files=all")
    inside = f"cd {made.path} && git "
    told = await bench.said(workspace, inside + " ".join(status))
    assert told == git(*status, at=checkout)
    assert "M file.txt" in told and "?? new/binary" in told and " D removed" in told
    assert (clone / "new/binary").read_bytes() == b"\0\xff"
    assert (clone / "link").is_symlink() and (clone / "file.txt").stat().st_mode & 0o111
    assert await bench.said(workspace, inside + "diff --cached --name-only") == ""
    assert await bench.said(workspace, inside + "rev-parse HEAD") == head
    assert await bench.said(workspace, inside + "fsck --no-dangling") == ""
    # A service that was killed afterwards asks again.
    (clone / "file.txt").write_text("by the agent")
    await bench.driver.provision(*given, changes)
    assert (clone / "file.txt").read_text() == "by the agent"


@pytest.mark.parametrize("fault", ["cut", "another", "corrupt"])
async def test_changes_that_cannot_be_right_make_no_workspace(
    bench: Bench, checkout: Path, git: Git, fault: str
) -> None:
    source = await bench.connect(checkout)
    (checkout / "new").write_text("new")
    right = await uncommitted(checkout)
    if fault == "another":
        git("commit", "--quiet", "--allow-empty", "-m", "later", at=checkout)
        changes = right
    else:
        pack = (
            right.pack[:-30] if fault == "cut" else right.pack[:-40] + b"x" * 20 + right.pack[-20:]
        )
        changes = replace(right, pack=pack)
    workspace = str(uuid4())
    with pytest.raises(CloneError):
        await bench.driver.provision(
            workspace, [source], "qd/one", bench.reported.append, {source.id: changes}
        )
    files = bench.home.workspaces / workspace / "files"
    assert not entries(files) and not entries(files.with_name("parts"))


@pytest.fixture
def served(checkout: Path, tmp_path: Path, git: Git) -> Iterator[str]:
    """The URL of a bare repository that has a pull request."""
    head = pushed(git, checkout, "over the network")
    bare = tmp_path / "served.git"
    git("clone", "--quiet", "--bare", str(checkout), str(bare), at=tmp_path)
    git("fetch", "--quiet", str(checkout), f"{head}:{PULL}", at=bare)
    git("update-server-info", at=bare)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(tmp_path))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/served.git"
        server.shutdown()
        thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.mark.long
async def test_a_head_over_the_network(bench: Bench, served: str, git: Git) -> None:
    source = await bench.connect(served)
    clone, base = await begun(bench, source, StartPoint((PULL,)))
    assert (clone / "file.txt").read_text() == "over the network"
    assert git("rev-parse", "HEAD", at=clone) == base
    again, _ = await begun(bench, source, StartPoint((PULL,), base))
    assert (again / "file.txt").read_text() == "over the network"


async def test_the_source_of_a_row_is_read_back_with_its_start() -> None:
    entry = {"id": "1", "name": "a", "url": "u", "default_branch": "main"}
    assert RepositorySource.from_json(entry).start is None
    start = {"refs": [PULL], "commit": None, "required": False}
    found = RepositorySource.from_json({**entry, "start": start})
    assert found.start == StartPoint((PULL,), None, required=False)
