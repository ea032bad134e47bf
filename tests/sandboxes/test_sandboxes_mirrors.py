"""Mirrors: every kind of source, what they refuse, and that a source is never written to."""

import hashlib
import os
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from quarterdeck.sandboxes.errors import CloneError, NotARepositoryError, UnknownBranchError
from quarterdeck.sandboxes.git import GitRunner, GitTimeoutError
from quarterdeck.sandboxes.mirrors import Mirrors
from tests.support.disks import limited_files

REPOSITORY = "11111111-2222-4333-8444-555555555555"


def fingerprint(directory: Path) -> str:
    """A hash of every file's name, mode, moment of change and content."""
    found = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        about = path.lstat()
        found.update(f"{path}{about.st_mode}{about.st_mtime_ns}{about.st_uid}".encode())
        if path.is_file() and not path.is_symlink():
            found.update(path.read_bytes())
    return found.hexdigest()


def mirrored(bench, git, repository_id=REPOSITORY) -> list[str]:
    mirror = bench.home.mirrors / repository_id
    return git("for-each-ref", "--format=%(refname)", at=mirror).split()


async def test_a_checkout(bench, checkout, git):
    info = await bench.driver.connect_repository(REPOSITORY, str(checkout))
    assert (info.default_branch, info.suggested_name, info.url) == ("trunk", "tools", str(checkout))
    assert mirrored(bench, git) == ["refs/heads/side", "refs/heads/trunk", "refs/quarterdeck/HEAD"]
    mirror = bench.home.mirrors / REPOSITORY
    assert git("config", "gc.pruneExpire", at=mirror) == "never"
    assert git("config", "gc.auto", at=mirror) == "0"
    assert not (mirror / "objects/info/alternates").exists()


async def test_a_full_disk_keeps_the_configuration_of_a_mirror(bench, checkout):
    source = await bench.connect(checkout)
    mirrors = Mirrors(bench.home.mirrors)
    config = mirrors.path(source.id) / "config"
    before = config.read_text()
    with limited_files(len(before) - 1), pytest.raises(OSError, match="File too large"):
        await mirrors.refresh(source, str)
    assert config.read_text() == before


@pytest.mark.parametrize("name", ["HEAD", "config", "packed-refs"])
async def test_git_does_not_wait_for_a_pipe_in_a_mirror(bench, checkout, name, monkeypatch):
    source = await bench.connect(checkout)
    mirrors = Mirrors(bench.home.mirrors)
    place = mirrors.path(source.id) / name
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    monkeypatch.setattr("quarterdeck.sandboxes.mirrors.QUERY_SECONDS", 1.0)
    with pytest.raises(CloneError) as refusal:
        await mirrors.fetch_branch(source, "trunk")
    assert f"{place} is a named pipe" in str(refusal.value.details)


async def test_the_checkout_is_never_written_to(bench, checkout, git):
    git("checkout", "--quiet", "side", at=checkout)
    (checkout / "file.txt").write_text("not committed")
    (checkout / "new.txt").write_text("not added")
    before = fingerprint(checkout)
    source = await bench.connect(checkout)
    workspace = await bench.started(source)
    await bench.said(workspace, "cd tools && echo x > y && git add y && git commit -qm y")
    await bench.driver.destroy(workspace)
    assert fingerprint(checkout) == before


async def test_hooks_do_not_run(bench, checkout, tmp_path, git, monkeypatch):
    witness = tmp_path / "witness"
    for name in ("post-checkout", "reference-transaction", "pre-auto-gc", "post-merge"):
        hook = checkout / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {witness}\n")
        hook.chmod(0o755)
    template = tmp_path / "template"
    shutil.copytree(checkout / ".git/hooks", template / "hooks")
    user = tmp_path / "user"
    user.mkdir()
    settings = f"[init]\n\ttemplateDir = {template}\n[core]\n\thooksPath = {template}/hooks\n"
    (user / ".gitconfig").write_text(settings)
    monkeypatch.setenv("HOME", str(user))
    source = await bench.connect(checkout)
    workspace = await bench.provision(source)
    assert not witness.exists()
    assert workspace


@pytest.mark.parametrize("inner", ["inner", ".git", "."])
async def test_a_path_within(bench, checkout, inner):
    info = await bench.driver.connect_repository(REPOSITORY, str(checkout / inner))
    assert info.suggested_name == "tools"
    assert info.default_branch == "trunk"


async def test_a_bare_repository(bench, checkout, tmp_path, git):
    bare = tmp_path / "site.git"
    git("clone", "--quiet", "--bare", str(checkout), str(bare), at=tmp_path)
    info = await bench.driver.connect_repository(REPOSITORY, f"file://{bare}")
    assert (info.default_branch, info.suggested_name) == ("trunk", "site")


async def test_a_linked_worktree_has_its_own_branch(bench, checkout, tmp_path, git):
    tree = tmp_path / "tree"
    git("worktree", "add", "--quiet", str(tree), "side", at=checkout)
    info = await bench.driver.connect_repository(REPOSITORY, str(tree))
    assert (info.default_branch, info.suggested_name) == ("side", "tree")


async def test_a_repository_without_commits(bench, tmp_path, git):
    git("init", "--quiet", "--initial-branch=dawn", str(tmp_path / "empty"), at=tmp_path)
    info = await bench.driver.connect_repository(REPOSITORY, str(tmp_path / "empty"))
    assert info.default_branch == "dawn"


async def test_a_detached_head(bench, checkout, git):
    git("checkout", "--quiet", "--detach", "side", at=checkout)
    info = await bench.driver.connect_repository(REPOSITORY, str(checkout))
    assert info.default_branch == "side"


@pytest.mark.long
async def test_a_detached_head_on_no_branch(bench, checkout, git):
    git("checkout", "--quiet", "--detach", at=checkout)
    git("commit", "--quiet", "--allow-empty", "-m", "adrift", at=checkout)
    git("branch", "-D", "side", "trunk", at=checkout)
    source = await bench.connect(checkout)
    assert source.default_branch == "main"
    workspace = await bench.started(source)
    assert await bench.said(workspace, "cd tools && git log -1 --format=%s") == "adrift"


async def test_a_shallow_checkout(bench, checkout, tmp_path, git):
    shallow = tmp_path / "shallow"
    git("clone", "--quiet", "--depth=1", f"file://{checkout}", str(shallow), at=tmp_path)
    source = await bench.connect(shallow)
    workspace = await bench.started(source)
    assert await bench.said(workspace, "cd shallow && git log --format=%s") == "change 1"


async def test_a_checkout_with_borrowed_objects(bench, checkout, tmp_path, git):
    borrowed = tmp_path / "borrowed"
    git("clone", "--quiet", "--shared", str(checkout), str(borrowed), at=tmp_path)
    await bench.driver.connect_repository(REPOSITORY, str(borrowed))
    shutil.rmtree(checkout)
    shutil.rmtree(borrowed)
    assert "missing" not in git("fsck", "--full", at=bench.home.mirrors / REPOSITORY)


async def test_a_checkout_of_another_user(bench, checkout):
    if os.geteuid() != 0:
        pytest.skip("only root can make a checkout of another user")
    for path in [checkout, *checkout.rglob("*")]:
        os.chown(path, 12345, 12345, follow_symlinks=False)
    info = await bench.driver.connect_repository(REPOSITORY, str(checkout))
    assert info.default_branch == "trunk"


@pytest.mark.long
async def test_over_http(bench, checkout, tmp_path, git):
    bare = tmp_path / "served.git"
    git("clone", "--quiet", "--bare", str(checkout), str(bare), at=tmp_path)
    git("update-server-info", at=bare)
    handler = partial(_Quiet, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://secret@127.0.0.1:{server.server_port}/served.git"
            source = await bench.connect(url)
            assert (source.default_branch, source.name) == ("trunk", "served")
            workspace = await bench.started(source)
            told = await bench.said(workspace, "cd served && cat .git/config")
            assert "/served.git" in told
            assert "secret" not in told
            with pytest.raises(NotARepositoryError) as caught:
                await bench.connect(url.replace("served", "absent"))
            assert "secret" not in f"{caught.value}{caught.value.details}"
        finally:
            server.shutdown()
            thread.join()
    later = await bench.provision(source)
    assert (bench.home.workspaces / later / "files/served/file.txt").exists()
    assert any("cannot be reached now" in line for line in bench.reported)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        return


async def test_a_branch_that_takes_too_long_to_read_is_an_error(bench, checkout, monkeypatch):
    source = await bench.connect(checkout)
    run = GitRunner.run

    async def too_slow(self: GitRunner, *arguments: str, **options: Any) -> str:
        if "refs/heads/trunk^{commit}" in arguments:
            raise GitTimeoutError("git took longer than 30 seconds")
        return await run(self, *arguments, **options)

    monkeypatch.setattr(GitRunner, "run", too_slow)
    with pytest.raises(CloneError, match=r"tools could not be read\.") as caught:
        await bench.driver.fetch_branch(source, "trunk")
    assert caught.value.details == "git took longer than 30 seconds"


async def test_what_is_no_repository(bench, tmp_path):
    (tmp_path / "plain").mkdir()
    (tmp_path / "file").write_text("x")
    wrong = [tmp_path / "plain", tmp_path / "absent", tmp_path / "file", "relative/path", "", "-x"]
    for url in [*wrong, "ext::sh -c true", "gopher://example.org/x", "a\nb"]:
        with pytest.raises(NotARepositoryError):
            await bench.driver.connect_repository(REPOSITORY, str(url))
    assert not (bench.home.mirrors / REPOSITORY).exists()
    assert list(bench.home.mirrors.glob(".new-*")) == []


async def test_a_damaged_repository(bench, checkout, git):
    blob = git("rev-parse", "HEAD:file.txt", at=checkout)
    (checkout / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(CloneError) as caught:
        await bench.driver.connect_repository(REPOSITORY, str(checkout))
    assert caught.value.details
    assert not (bench.home.mirrors / REPOSITORY).exists()


async def test_the_callers_git_environment_does_not_matter(bench, checkout, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    source = await bench.connect(checkout)
    assert source.default_branch == "trunk"


@pytest.mark.long
async def test_mirrors_that_nothing_needs_are_removed(bench, checkout):
    connected = await bench.connect(checkout)
    borrowed = await bench.connect(checkout)
    just_made = await bench.connect(checkout)
    gone = await bench.connect(checkout)
    workspace = await bench.provision(borrowed)
    for one in (connected, borrowed, gone):
        head = bench.home.mirrors / one.id / "HEAD"
        os.utime(head, (0, 0))
    await bench.driver.tidy({connected.id})
    left = {path.parent.name for path in bench.home.mirrors.glob("*/HEAD")}
    assert left == {connected.id, borrowed.id, just_made.id}
    await bench.driver.destroy(workspace)
    await bench.driver.tidy({connected.id})
    left = {path.parent.name for path in bench.home.mirrors.glob("*/HEAD")}
    assert left == {connected.id, just_made.id}
    assert not list(bench.home.mirrors.glob(".old*"))


async def test_a_default_branch_has_to_be_there(bench, checkout, tmp_path, git):
    for branch in ("side", "trunk"):
        await bench.driver.connect_repository(str(uuid4()), str(checkout), branch)
    for branch in ("sid", "a..b", "-x", "HEAD~1", "refs/heads/side"):
        with pytest.raises(UnknownBranchError, match="no branch"):
            await bench.driver.connect_repository(str(uuid4()), str(checkout), branch)
    git("init", "--quiet", "--initial-branch=later", str(tmp_path / "empty"), at=tmp_path)
    await bench.driver.connect_repository(str(uuid4()), str(tmp_path / "empty"), "later")


async def test_what_a_killed_git_left_stops_no_fetch(bench, checkout, git):
    source = await bench.connect(checkout)
    mirrors = Mirrors(bench.home.mirrors)
    mirror = mirrors.path(source.id)
    locks = ("HEAD.lock", "packed-refs.lock", "refs/heads/trunk.lock")
    objects = ("objects/pack/tmp_pack_Ab12Cd", "objects/7f/tmp_obj_Ab12Cd")
    left = [mirror / name for name in (*locks, *objects)]
    for path in left:
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    git("commit", "--quiet", "--allow-empty", "--message=More", at=checkout)
    git("branch", "--delete", "--force", "side", at=checkout)
    assert await mirrors.fetch_branch(source, "trunk") == git("rev-parse", "trunk", at=checkout)
    assert not [path for path in left if path.exists()]
    assert mirrored(bench, git, source.id) == ["refs/heads/trunk", "refs/quarterdeck/HEAD"]
