"""A source that names further servers and programs: git-lfs, submodules, and what git's protocols offer.

The owner has configured git to follow all of them, which is for their own work.
"""

import asyncio
import os
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.port import RepositorySource, StartPoint
from quarterdeck.sandboxes.source_port import RefUpdate
from tests.sandboxes.test_sandboxes_outgoing import parts_of

OWNER = """\
[filter "lfs"]
\tclean = git-lfs clean -- %f
\tsmudge = git-lfs smudge -- %f
\tprocess = git-lfs filter-process
\trequired = true
[submodule]
\trecurse = true
\tactive = .
[fetch]
\trecurseSubmodules = true
\turiProtocols = http,https
[push]
\trecurseSubmodules = on-demand
[transfer]
\tbundleURI = true
[protocol]
\tallow = always
[protocol "ext"]
\tallow = always
[init]
\ttemplateDir = {template}
"""


class _Counting(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        self.send_error(404)

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def elsewhere() -> Iterator[ThreadingHTTPServer]:
    """A server that nobody may be led to; `asked` are its requests."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Counting) as server:
        server.asked = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What git-lfs, hooks and helpers of the owner's were called with outside a sandbox."""
    calls, programs, template = (tmp_path / name for name in ("calls", "programs", "template"))
    programs.mkdir()
    (template / "hooks").mkdir(parents=True)
    hooks = ("pre-push", "post-checkout", "post-commit", "post-merge", "reference-transaction")
    for path in (programs / "git-lfs", *(template / "hooks" / name for name in hooks)):
        path.write_text(f'#!/bin/sh\necho "$0 $@" >> {calls}\ncat\n')
        path.chmod(0o755)
    configuration = tmp_path / "owner"
    configuration.write_text(OWNER.format(template=template))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(configuration))
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return calls


def make_hostile(checkout: Path, git, url: str, calls: Path) -> str:
    """Let a repository use git-lfs and submodules of a server; return a tree's commit that is packed."""
    (checkout / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    (checkout / ".lfsconfig").write_text(f"[lfs]\n\turl = {url}/lfs\n\tpushurl = {url}/push\n")
    (checkout / "big.bin").write_text(
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 5\n"
    )
    entries = (("web", f"{url}/sub.git"), ("helper", f"ext::sh -c 'touch {calls}'"))
    (checkout / ".gitmodules").write_text(
        "".join(
            f'[submodule "{name}"]\n\tpath = {name}\n\turl = {address}\n\tfetchRecurseSubmodules = true\n'
            for name, address in entries
        )
    )
    git("add", ".gitattributes", ".lfsconfig", "big.bin", ".gitmodules", at=checkout)
    head = git("rev-parse", "HEAD", at=checkout)
    for name, _ in entries:
        git("update-index", "--add", "--cacheinfo", f"160000,{head},{name}", at=checkout)
    git("commit", "--quiet", "-m", "Hostile", at=checkout)
    git("update-ref", "refs/pull/1/head", "HEAD", at=checkout)
    return git("rev-parse", "HEAD", at=checkout)


def copied(checkout: Path, git, place: Path) -> Path:
    """A bare copy of a repository, with nothing of the owner's."""
    place.parent.mkdir(exist_ok=True)
    git("clone", "--quiet", "--bare", "--template=", str(checkout), str(place), at=checkout)
    return place


async def test_no_operation_of_the_service_follows_git_lfs_or_submodules(
    bench, checkout, tmp_path, git, calls, elsewhere
) -> None:
    url = f"http://127.0.0.1:{elsewhere.server_port}"
    make_hostile(checkout, git, url, calls)
    remote = copied(checkout, git, tmp_path / "shop.git")
    git("push", "--quiet", str(remote), "refs/pull/1/head", at=checkout)
    driver = bench.driver
    source = await bench.connect(f"file://{remote}")
    await driver.branches(source)
    await driver.source_refs(source)
    await driver.fetch_branch(source, source.default_branch)
    await driver.fetch_pull_requests(source, ["refs/pull/1/head"])
    await driver.require_ref(source, ["refs/pull/1/head"])
    await driver.find_base(source, "side")
    read = {one.path for one in await driver.read_tree(f"file://{remote}", "")}
    assert {"big.bin", ".lfsconfig"} <= read
    (checkout / "file.txt").write_text("more\n")
    git("commit", "--quiet", "-am", "More", at=checkout)
    commit = git("rev-parse", "HEAD", at=checkout)
    packed = await asyncio.to_thread(
        subprocess.run,
        ("git", "pack-objects", "--revs", "--stdout", "--quiet"),
        cwd=checkout,
        input=f"{commit}\n".encode(),
        capture_output=True,
        check=True,
    )
    await driver.push(source, parts_of(packed.stdout), [RefUpdate("refs/heads/new", commit)])
    assert git("rev-parse", "refs/heads/new", at=remote) == commit
    start = StartPoint(("refs/pull/1/head",), None)
    workspace = await bench.provision(
        RepositorySource(source.id, source.name, source.url, source.default_branch, start)
    )
    assert (
        (bench.home.workspaces / workspace / "files/shop/big.bin").read_text().endswith("size 5\n")
    )
    await driver.repositories(workspace, [source])
    assert not calls.exists(), calls.read_text()
    assert elsewhere.asked == []


async def test_objects_elsewhere_that_a_server_names_are_not_fetched(
    bench, checkout, tmp_path, git, calls, elsewhere
) -> None:
    """By the list of a server that only has files, and by the protocol's addresses of packs."""
    url = f"http://127.0.0.1:{elsewhere.server_port}"
    remote = copied(checkout, git, tmp_path / "served" / "shop.git")
    git("update-server-info", at=remote)
    for path in remote.glob("objects/??/*"):
        path.unlink()
    for path in remote.glob("objects/pack/*"):
        path.unlink()
    (remote / "objects/info/http-alternates").write_text(f"{url}/other.git/objects\n")
    (remote / "objects/info/packs").write_text("\n")
    handler = partial(_Silent, directory=str(tmp_path / "served"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with pytest.raises(SandboxError):
            await bench.connect(f"http://127.0.0.1:{server.server_port}/shop.git")
        server.shutdown()
        thread.join()
    assert elsewhere.asked == []


async def test_no_packs_at_other_addresses_are_asked_for(
    bench, checkout, tmp_path, git, calls, monkeypatch
) -> None:
    remote = copied(checkout, git, tmp_path / "shop.git")
    offered = f"{'0' * 40} {'0' * 40} http://127.0.0.1:1/x"
    git("config", "uploadpack.blobPackfileUri", offered, at=remote)
    trace = tmp_path / "trace"
    source = await bench.connect(f"file://{remote}")
    (checkout / "file.txt").write_text("more\n")
    git("commit", "--quiet", "-am", "More", at=checkout)
    git("push", "--quiet", str(remote), "HEAD", at=checkout)
    run = type(bench.driver._mirrors.git).run

    async def traced(self, *arguments, **options):
        options["variables"] = {**options.get("variables", {}), "GIT_TRACE_PACKET": str(trace)}
        return await run(self, *arguments, **options)

    monkeypatch.setattr(type(bench.driver._mirrors.git), "run", traced)
    await bench.driver.fetch_branch(source, source.default_branch)
    said = trace.read_text()
    assert "fetch< fetch=shallow wait-for-done packfile-uris" in said  # it was offered
    assert "fetch> command=fetch" in said
    assert "fetch> packfile-uris" not in said and "fetch> command=bundle-uri" not in said


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        return
