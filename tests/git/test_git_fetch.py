"""Fetching from a replica with git: by the address `qd::NAME`, and over HTTP by any client."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from quarterdeck.service.middleware import PLAIN_LIMIT
from tests.git.conftest import Shop, commit
from tests.support.git import git

PROGRAMS = Path(sys.executable).parent


def fetch(shop: Shop, directory: Path, *arguments: str, **variables: str) -> str:
    """Run git with the helper on the path and the installation as its service."""
    environment = {
        **shop.deck.environment,
        "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
        **variables,
    }
    done = subprocess.run(
        ["git", *arguments], cwd=directory, env=environment, capture_output=True, text=True
    )
    return f"{done.returncode}\n{done.stdout}{done.stderr}"


def test_git_fetches_branches_and_tags_by_the_name_of_a_replica(lasting: Shop) -> None:
    lasting.run("echo more > more; git add more; git commit -qm More; git tag v1; git branch other")
    branch = lasting.run("git branch --show-current").strip()
    head = lasting.run("git rev-parse HEAD").strip()
    name = lasting.deck.replica(lasting.id)["name"]
    branches = {f"refs/heads/{one}" for one in (branch, "main", "other")}
    for rest in (lambda: None, lasting.sleep):
        rest()
        assert fetch(lasting, lasting.checkout, "fetch", f"qd::{name}", branch).startswith("0\n")
        assert git(lasting.checkout, "rev-parse", "FETCH_HEAD") == head
        listed = fetch(lasting, lasting.checkout, "ls-remote", f"qd::{name}/shop")
        refs = {line.split()[1] for line in listed.splitlines()[1:]}
        assert refs == {"HEAD", *branches, "refs/tags/v1"}


@pytest.mark.long
def test_a_pull_brings_later_commits(shop: Shop) -> None:
    shop.run("echo more > more; git add more; git commit -qm More")
    branch = shop.run("git branch --show-current").strip()
    address = f"qd::{shop.id}"
    assert fetch(shop, shop.checkout, "pull", "-q", "--ff-only", address, branch).startswith("0\n")
    shop.run("echo again > more; git commit -qam Again")
    git(shop.checkout, "remote", "add", "replica", address)
    assert fetch(shop, shop.checkout, "pull", "-q", "replica", branch).startswith("0\n")
    assert (shop.checkout / "more").read_text() == "again\n"


@pytest.mark.long
def test_any_client_clones_over_http(lasting: Shop, tmp_path: Path) -> None:
    lasting.run("for n in $(seq 50); do git branch b$n; done; git update-ref refs/qd/turns/1 HEAD")
    address = f"http://127.0.0.1:{lasting.deck.port}{lasting.path}/shop/repo.git"
    bearer = ("-c", f"http.extraHeader=Authorization: Bearer {lasting.deck.key}")
    for version in ("0", "2"):
        options = (*bearer, "-c", f"protocol.version={version}")
        copy = tmp_path / f"copy{version}"
        done = fetch(lasting, tmp_path, *options, "clone", "-q", "--mirror", address, copy.name)
        assert done.startswith("0\n"), done
        names = git(copy, "for-each-ref", "--format=%(refname)").split()
        assert len([name for name in names if name.startswith("refs/heads/b")]) == 50
        assert not any(name.startswith(("refs/qd", "refs/remotes")) for name in names)
        # What was had before is named, by a request that is compressed when it is long.
        lasting.run("echo more >> more; git add more; git commit -qm More")
        assert fetch(lasting, copy, *options, "fetch", "-q").startswith("0\n")
    assert fetch(lasting, tmp_path, "ls-remote", address, GIT_TERMINAL_PROMPT="0").startswith(
        "128\n"
    )


@pytest.mark.long
def test_a_push_and_unknown_replicas_and_repositories_are_refused(shop: Shop) -> None:
    commit(shop.checkout, "here", "here")
    told = fetch(shop, shop.checkout, "push", f"qd::{shop.id}", "main:new")
    assert told.startswith("128\n") and "can only be fetched from" in told
    assert "new" not in shop.run("git branch")
    told = fetch(shop, shop.checkout, "fetch", "qd::nobody")
    assert "There is no replica 'nobody'" in told
    told = fetch(shop, shop.checkout, "fetch", f"qd::{shop.id}/nothing")
    assert "The replica has no repository nothing" in told
    shop.deck.post(f"/v1/replica/{shop.id}/archive")
    assert "Wake it first" in fetch(shop, shop.checkout, "fetch", f"qd::{shop.id}")


@pytest.mark.long
def test_a_long_history_is_streamed(lasting: Shop, tmp_path: Path) -> None:
    lasting.run(
        "for n in 1 2 3; do head -c 8000000 /dev/urandom > f$n; git add .; git commit -qm $n; done"
    )
    assert fetch(lasting, tmp_path, "clone", "-q", f"qd::{lasting.id}", "copy").startswith("0\n")
    assert (tmp_path / "copy" / "f3").stat().st_size == 8_000_000


@pytest.mark.long
def test_invalid_requests_are_refused(lasting: Shop) -> None:
    served = f"{lasting.path}/shop/repo.git"
    answer = lasting.deck.ask("GET", f"{served}/info/refs?service=git-receive-pack")
    assert answer.status_code == 400, answer.text
    headers = {"Authorization": f"Bearer {lasting.deck.key}", "Content-Encoding": "gzip"}
    cut_short = gzip.compress(b"0000" * 1000)[:-9]
    too_large = gzip.compress(bytes(PLAIN_LIMIT + 1))
    with lasting.deck.client(**headers) as client:
        for body, status, said in (
            (b"not compressed", 400, "not valid gzip"),
            (cut_short, 400, "incomplete"),
            (too_large, 413, "too large"),
        ):
            answer = client.post(f"{served}/git-upload-pack", content=body)
            assert answer.status_code == status and said in answer.text, answer.text


@pytest.mark.long
@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        ("MOST_BYTES = 50_000", "The fetched data is larger than"),
        ("REFS_BYTES = 10", "The names of the branches and tags take more than"),
    ],
)
def test_a_fetch_of_too_much_is_cut_off(
    lasting: Shop, tmp_path: Path, bound: str, reason: str
) -> None:
    lasting.run("head -c 100000 /dev/urandom > much; git add much; git commit -qm Much")
    helper = tmp_path / "git-remote-qd"
    program = f"from quarterdeck.cli import git_remote as g; g.{bound}; g.main()"
    helper.write_text(f"#!{sys.executable}\n{program}\n")
    helper.chmod(0o755)
    git(tmp_path, "clone", "-q", str(lasting.checkout), "copy")
    said = fetch(
        *(lasting, tmp_path / "copy", "fetch", f"qd::{lasting.id}"),
        PATH=f"{tmp_path}:{os.environ['PATH']}",
    )
    assert not said.startswith("0\n") and reason in said, said
    git(tmp_path / "copy", "fsck", "--strict")
    assert fetch(lasting, tmp_path / "copy", "fetch", f"qd::{lasting.id}").startswith("0\n")
