"""Putting repositories into workspaces: branches, repeats, failures, and what may happen beside."""

import asyncio
import os
import shutil
import subprocess
from uuid import uuid4

import pytest

from quarterdeck.sandboxes.clones import Provisioner
from quarterdeck.sandboxes.errors import CloneError, SandboxError
from quarterdeck.sandboxes.mirrors import Mirrors
from quarterdeck.sandboxes.port import RepositorySource
from quarterdeck.sandboxes.processes import sandbox_user
from tests.support.tools import require


async def command(*words: str) -> None:
    await asyncio.to_thread(subprocess.run, words, check=True)


def files(bench, workspace):
    return bench.home.workspaces / workspace / "files"


async def test_what_a_workspace_gets(bench, checkout, git):
    source = await bench.connect(checkout)
    workspace = str(uuid4())
    [found] = await bench.driver.provision(workspace, [source], "qd/sea-lion", print)
    layout = await bench.driver.layout(workspace)
    assert found.path == f"{layout.workspace_dir}/tools"
    assert (found.name, found.default_branch) == ("tools", "trunk")
    assert found.base_commit == git("rev-parse", "HEAD", at=checkout)
    clone = files(bench, workspace) / "tools"
    assert git("config", "remote.origin.url", at=clone) == str(checkout)
    assert git("symbolic-ref", "HEAD", at=clone) == "refs/heads/qd/sea-lion"
    assert (clone / "file.txt").read_text() == "line 1\n"
    assert clone.stat().st_uid == sandbox_user(None).uid
    assert (clone / "file.txt").stat().st_uid == sandbox_user(None).uid


async def test_new_commits_of_the_source_arrive(bench, checkout, git):
    source = await bench.connect(checkout)
    git("commit", "--quiet", "--allow-empty", "-m", "later", at=checkout)
    git("checkout", "--quiet", "side", at=checkout)
    workspace = str(uuid4())
    [found] = await bench.driver.provision(workspace, [source], "qd/one", print)
    assert found.base_commit == git("rev-parse", "trunk", at=checkout)


async def test_a_source_that_is_gone_is_reported(bench, checkout):
    source = await bench.connect(checkout)
    checkout.rename(checkout.with_name("elsewhere"))
    workspace = await bench.provision(source)
    assert (files(bench, workspace) / "tools/file.txt").exists()
    assert any("cannot be reached now" in line for line in bench.reported)


async def test_an_unborn_branch(bench, tmp_path, git):
    git("init", "--quiet", "--initial-branch=dawn", str(tmp_path / "empty"), at=tmp_path)
    source = await bench.connect(tmp_path / "empty")
    workspace = str(uuid4())
    [found] = await bench.driver.provision(workspace, [source], "qd/one", print)
    assert found.base_commit is None
    await bench.driver.start(workspace)
    told = await bench.said(
        workspace, "cd empty && touch a && git add a && git commit -qm first && git status -sb"
    )
    assert told == "## qd/one"


async def test_commits_have_an_author(bench, checkout, tmp_path, monkeypatch):
    user = tmp_path / "user"
    user.mkdir()
    (user / ".gitconfig").write_text(
        '[user]\n\tname = Zoë "Z" \\\\ B\n\temail = zoe@example.org\n[commit]\n\tgpgSign\n'
    )
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    workspace = await bench.started(await bench.connect(checkout))
    told = await bench.said(
        workspace,
        "git config --global user.name; git config user.email;"
        " git config commit.gpgSign; git config tag.gpgSign",
    )
    assert told.splitlines() == ["Zoë Z \\ B", "zoe@example.org", "false", "false"]


async def test_filters_of_the_services_user_do_not_run(bench, checkout, tmp_path, git, monkeypatch):
    user, witness = tmp_path / "user", tmp_path / "witness"
    user.mkdir()
    (user / ".gitconfig").write_text(f'[filter "x"]\n\tsmudge = touch {witness} && cat\n')
    monkeypatch.setenv("HOME", str(user))
    (checkout / ".gitattributes").write_text("* filter=x\n")
    git("add", ".", at=checkout)
    git("commit", "--quiet", "-m", "filtered", at=checkout)
    await bench.provision(await bench.connect(checkout))
    assert not witness.exists()


async def test_asked_again_a_finished_clone_is_left_alone(bench, checkout):
    source = await bench.connect(checkout)
    workspace = await bench.provision(source)
    changed = files(bench, workspace) / "tools/file.txt"
    changed.write_text("work of an agent")
    before = (files(bench, workspace) / "tools").stat().st_ino
    [again] = await bench.driver.provision(workspace, [source], "qd/other", print)
    assert changed.read_text() == "work of an agent"
    assert (files(bench, workspace) / "tools").stat().st_ino == before
    assert again.base_commit


async def test_two_repositories_of_one_name(bench, checkout, tmp_path, git):
    other = tmp_path / "deeper" / "tools"
    git("clone", "--quiet", str(checkout), str(other), at=tmp_path)
    sources = [await bench.connect(checkout), await bench.connect(other)]
    workspace = str(uuid4())
    first = await bench.driver.provision(workspace, sources, "qd/one", print)
    assert [found.name for found in first] == ["tools", "tools-2"]
    assert await bench.driver.provision(workspace, sources, "qd/one", print) == first


@pytest.mark.parametrize("name", ["../../escape", "..", "/etc", ".git", "a b\nc", "-rf"])
async def test_names_stay_in_the_workspace(bench, checkout, name):
    source = await bench.connect(checkout, name)
    workspace = await bench.provision(source)
    [found] = files(bench, workspace).iterdir()
    assert found.is_dir()
    assert (found / "file.txt").exists()


@pytest.mark.long
async def test_gc_in_the_source_breaks_nothing(bench, checkout, git):
    source = await bench.connect(checkout)
    workspace = await bench.started(source)
    git("checkout", "--quiet", "--orphan", "fresh", at=checkout)
    git("commit", "--quiet", "-m", "anew", at=checkout)
    git("branch", "-D", "trunk", "side", at=checkout)
    git("reflog", "expire", "--expire=now", "--all", at=checkout)
    git("gc", "--quiet", "--prune=now", at=checkout)
    later = await bench.provision(source)
    assert later
    told = await bench.said(
        workspace, "cd tools && git fsck --full && git log --format=%s && git status -s"
    )
    assert told.splitlines()[-2:] == ["change 1", "change 0"]


async def test_a_default_branch_that_is_gone(bench, checkout, git):
    source = await bench.connect(checkout)
    git("branch", "-m", "trunk", "stem", at=checkout)
    workspace = await bench.provision(source)
    assert (files(bench, workspace) / "tools/file.txt").read_text() == "line 1\n"
    assert any("trunk" in line for line in bench.reported)


async def test_a_clone_that_fails_can_be_made_again(bench, checkout):
    source = await bench.connect(checkout)
    workspace = str(uuid4())
    with pytest.raises(CloneError) as caught:
        await bench.driver.provision(workspace, [source], "not a branch..", print)
    assert caught.value.details
    assert list(files(bench, workspace).iterdir()) == []
    await bench.provision(source, workspace_id=workspace)
    assert (files(bench, workspace) / "tools/file.txt").read_text() == "line 1\n"


async def test_a_lost_mirror_is_made_again(bench, checkout):
    source = await bench.connect(checkout)
    await asyncio.to_thread(shutil.rmtree, bench.home.mirrors)
    workspace = await bench.provision(source)
    assert (files(bench, workspace) / "tools/file.txt").exists()


async def test_the_way_out_of_a_damaged_mirror(bench, checkout, git):
    """Clones that borrow from it read the objects of the new one."""
    source = await bench.connect(checkout)
    earlier = files(bench, await bench.provision(source)) / "tools"
    mirror = bench.home.mirrors / source.id
    for file in (mirror / "objects").glob("??/*"):
        file.chmod(0o600)
        file.write_bytes(b"damaged")
    with pytest.raises(CloneError) as failed:
        await bench.provision(source)
    assert f"mirrors/{source.id} in its home, is damaged" in str(failed.value.details)
    mirror.rename(bench.home.mirrors.with_name("aside"))
    await bench.provision(source)
    assert git("--git-dir", str(mirror), "log", "--format=%s", "-1", at=checkout)
    assert (earlier / ".git/objects/info/alternates").read_text().count(source.id)


async def test_without_mirror_and_source(bench):
    source = RepositorySource(str(uuid4()), "ghost", "/nonexistent/ghost", "main")
    with pytest.raises(SandboxError):
        await bench.provision(source)


async def test_cancelled_while_cloning(bench, checkout):
    source = await bench.connect(checkout)
    workspace = str(uuid4())
    for steps in (1, 3, 8, 20):
        task = asyncio.create_task(bench.provision(source, workspace_id=workspace))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await bench.provision(source, workspace_id=workspace)
    assert (files(bench, workspace) / "tools/file.txt").read_text() == "line 1\n"


async def test_many_at_once(bench, checkout):
    source = await bench.connect(checkout)
    made = await asyncio.gather(*(bench.provision(source) for _ in range(5)))
    assert all((files(bench, workspace) / "tools/file.txt").exists() for workspace in made)


async def test_links_in_a_repository_lead_nowhere(bench, checkout, tmp_path, git):
    """A tree that tries to have its owner's files given away."""
    outside = tmp_path / "outside"
    outside.write_text("mine")
    owner = outside.stat().st_uid
    (checkout / "link").symlink_to(outside)
    git("add", ".", at=checkout)
    git("commit", "--quiet", "-m", "link", at=checkout)
    await bench.provision(await bench.connect(checkout))
    assert outside.stat().st_uid == owner


@pytest.mark.long
async def test_a_full_disk_while_cloning(bench, checkout, tmp_path, git):
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    (checkout / "large").write_bytes(os.urandom(3 << 20))
    git("add", ".", at=checkout)
    git("commit", "--quiet", "-m", "large", at=checkout)
    source = await bench.connect(checkout)
    workspace = str(uuid4())
    place = bench.home.workspaces / workspace
    place.mkdir(parents=True, mode=0o700)
    small = [require("mount"), "-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs", str(place)]
    await command(*small)
    try:
        with pytest.raises(SandboxError, match="disk is full") as caught:
            await bench.provision(source, workspace_id=workspace)
        assert not isinstance(caught.value, CloneError)
        assert list((place / "files").iterdir()) == []
        await command("mount", "-o", "remount,size=20m", str(place))
        await bench.provision(source, workspace_id=workspace)
        assert (place / "files/tools/large").stat().st_size == 3 << 20
    finally:
        await command("umount", str(place))


async def test_a_provisioner_of_its_own(home, checkout):
    mirrors = Mirrors(home.mirrors)
    info = await mirrors.connect("one", str(checkout))
    assert info.default_branch == "trunk"
    provisioner = Provisioner(mirrors, sandbox_user(None), "none")
    assert provisioner.mirrors.objects("one").is_dir()
