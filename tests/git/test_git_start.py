"""A replica starts from where the person is: branch, tag, commit, pull request, uncommitted changes."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.git.conftest import Shop, commit
from tests.git.remotes import bare_copy
from tests.support.git import git, make_repository
from tests.support.installation import Installation, snapshot
from tests.support.waiting import until

CHANGES = "git status --porcelain --untracked-files=all"


@pytest.fixture
def desk(git_deck: Installation, require_tool: Any) -> Iterator[Installation]:
    """The installation; what a test has created is deleted."""
    require_tool("bwrap")
    yield git_deck
    git_deck.delete_all()


@pytest.fixture
def checkout(desk: Installation, tmp_path: Path) -> Path:
    """A connected checkout; its branch is newer, was never pushed, and is ahead of `main`."""
    place = make_repository(tmp_path / "shop")
    desk.connect(str(place))
    git(place, "tag", "v1", "HEAD^")
    git(place, "checkout", "-q", "-b", "feature/#1")
    commit(place, "feature", "of the branch\n")
    return place


def created(desk: Installation, cwd: Path, *options: str) -> Shop:
    """A replica, created in a directory by the command line."""
    done = desk.qd("replica", "create", "--wait", "--json", *options, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return Shop(desk, cwd, json.loads(done.stdout.splitlines()[0])["replica"]["id"])


def refused(desk: Installation, cwd: Path, *options: str, code: int = 1) -> str:
    """What the command line says when it creates no replica."""
    before = desk.get("/v1/replica")["total"]
    done = desk.qd("replica", "create", *options, cwd=cwd)
    assert done.returncode == code, done.stderr
    assert desk.get("/v1/replica")["total"] == before
    return done.stderr


@pytest.mark.long
def test_the_branch_that_is_checked_out(desk: Installation, checkout: Path) -> None:
    shop = created(desk, checkout)
    assert shop.run("cat feature") == "of the branch\n"
    state = shop.state()
    assert (state["base_branch"], state["ahead"], state["behind"]) == ("feature/#1", 0, 0)
    commit(checkout, "later", "later\n")
    done = desk.qd("replica", "update", shop.id)
    assert done.returncode == 0, done.stderr
    assert shop.run("cat later") == "later\n"
    shop.run("echo mine > mine; git add mine; git commit -qm Mine")
    done = desk.qd("replica", "diff", shop.id)
    assert "b/mine" in done.stdout and "b/feature" not in done.stdout


@pytest.mark.long
def test_a_branch_a_tag_a_commit_and_a_detached_head(desk: Installation, checkout: Path) -> None:
    main, first = git(checkout, "rev-parse", "main"), git(checkout, "rev-parse", "v1^{commit}")
    shop = created(desk, checkout, "--base", "main")
    assert (shop.state()["head"], shop.state()["base_branch"]) == (main, "main")
    shop = created(desk, checkout, "--base", "v1")
    assert (shop.state()["head"], shop.state()["base_branch"]) == (first, "main")
    shop = created(desk, checkout, "--base", first[:8])
    assert shop.state()["head"] == first
    git(checkout, "checkout", "-q", "--detach", first)
    shop = created(desk, checkout)
    assert (shop.state()["head"], shop.state()["base_branch"]) == (first, "main")
    assert "shop has no branch, tag or commit nothing." in refused(
        desk, checkout, "--base", "nothing"
    )


@pytest.mark.long
def test_a_pull_request(desk: Installation, checkout: Path) -> None:
    git(checkout, "update-ref", "refs/merge-requests/5/head", "v1^{commit}")
    shop = created(desk, checkout, "--pr", "5")
    assert shop.state()["head"] == git(checkout, "rev-parse", "v1^{commit}")
    assert "refs/pull/6/head" in refused(desk, checkout, "--pr", "6")
    assert "--pr cannot be combined with" in refused(
        desk, checkout, "--pr", "5", "--base", "v1", code=2
    )


@pytest.mark.long
def test_a_remote_that_has_the_branch(desk: Installation, checkout: Path, tmp_path: Path) -> None:
    remote = bare_copy(checkout, tmp_path / "far" / "shop.git")
    url = f"file://{remote}"
    git(checkout, "remote", "add", "origin", url)
    git(checkout, "fetch", "-q", "origin")
    head = git(checkout, "rev-parse", "HEAD")
    git(remote, "symbolic-ref", "HEAD", "refs/heads/main")
    shop = created(desk, checkout, "--repo", url)
    assert (shop.state()["head"], shop.state()["base_branch"]) == (head, "feature/#1")
    (checkout / "edited").write_text("edited\n")
    shop = created(desk, checkout, "--repo", url, "--with-uncommitted")
    assert shop.run(CHANGES) == "?? edited\n"
    assert shop.state()["base_branch"] == "feature/#1"
    (checkout / "edited").unlink()
    commit(checkout, "local", "not pushed\n")
    done = desk.qd("replica", "create", "--wait", "--repo", url, cwd=checkout)
    assert "feature/#1: 1 commit is not pushed, and left out." in done.stderr
    (checkout / "edited").write_text("edited\n")
    told = refused(desk, checkout, "--repo", url, "--with-uncommitted")
    assert "1 commit is not pushed" in told and "Push first" in told
    git(checkout, "checkout", "-q", "-b", "unknown")
    shop = created(desk, checkout, "--repo", url)
    assert shop.state()["base_branch"] == "main"
    told = refused(desk, checkout, "--repo", url, "--with-uncommitted", code=2)
    assert "not a checkout of the replica's repository" in told


@pytest.mark.long
def test_an_environment_of_the_repository_here(desk: Installation, checkout: Path) -> None:
    other = make_repository(checkout.with_name("other"))
    ids = [desk.connect(str(one)) for one in (other, checkout)]
    body = {"name": f"set {checkout.parent.name}", "repositories": ids}
    made = desk.post("/v1/replica/repository-sets", body, 201)["repository_set"]["id"]
    body = {"name": f"both {checkout.parent.name}", "repository_set_id": made}
    desk.post("/v1/environments", body, 201)
    (checkout / "new").write_text("new\n")
    shop = created(desk, checkout, "--env", body["name"], "--with-uncommitted")
    assert shop.run("cat feature new") == "of the branch\nnew\n"
    states = desk.get(shop.path)["repositories"]
    assert {one["repository"]: one["base_branch"] for one in states} == {
        "other": "main",
        "shop": "feature/#1",
    }


@pytest.mark.long
def test_uncommitted_changes_and_the_checkout_untouched(desk: Installation, checkout: Path) -> None:
    (checkout / ".gitignore").write_text("ignored\n")
    git(checkout, "add", ".gitignore")
    (checkout / "ignored").write_text("ignored\n")
    (checkout / "feature").unlink()
    (checkout / "README").write_text("Edited.\n")
    (checkout / "binary").write_bytes(b"\0\xff" * 5000)
    (checkout / "link").symlink_to("nowhere")
    before = state_of(checkout)
    shop = created(desk, checkout, "--with-uncommitted")
    assert state_of(checkout) == before
    assert shop.run(CHANGES).splitlines() == [
        " M README",
        " D feature",
        "?? .gitignore",
        "?? binary",
        "?? link",
    ]
    assert shop.run("git diff --cached --name-only; cat README; readlink link; wc -c < binary") == (
        "Edited.\nnowhere\n10000\n"
    )
    assert shop.state()["head"] == git(checkout, "rev-parse", "HEAD")
    shop.run("git checkout -q README")
    shop.sleep()
    desk.post(f"/v1/replica/{shop.id}/wake", status=202)
    desk.reach(shop.id, "active")
    assert " M README" not in shop.run(CHANGES)

    told = refused(desk, checkout, "--base", "main", "--with-uncommitted")
    assert "main does not contain the commit" in told
    git(checkout, "branch", "ahead")
    shop = created(desk, checkout, "--base", "ahead", "--with-uncommitted")
    assert shop.state()["base_branch"] == "ahead" and "M README" in shop.run(CHANGES)
    subprocess.run(["truncate", "-s", "1200M", str(checkout / "huge")], check=True)
    told = refused(desk, checkout, "--with-uncommitted")
    assert "at most 32 MB" in told and "huge (1200 MB)" in told


@pytest.mark.long
@pytest.mark.parametrize("how", ["apply", "merge"])
def test_work_on_uncommitted_changes_is_brought_back_over_them(
    desk: Installation, checkout: Path, how: str
) -> None:
    (checkout / "README").write_text("Edited.\n")
    (checkout / "notes").write_text("mine\n")
    shop = created(desk, checkout, "--with-uncommitted")
    shop.run("echo more >> README; echo more >> notes; git add .; git commit -qm More")
    shop.run("git gc -q --prune=now")
    with (checkout / "notes").open("a") as file:
        file.write("later\n")
    done = desk.qd("replica", how, shop.id, cwd=checkout)
    assert done.returncode == 1 and "Files: notes." in done.stderr
    assert (checkout / "README").read_text() == "Edited.\n"
    (checkout / "notes").write_text("mine\n")
    done = desk.qd("replica", how, shop.id, cwd=checkout)
    assert done.returncode == 0, done.stderr
    assert (checkout / "README").read_text() == "Edited.\nmore\n"
    assert (checkout / "notes").read_text() == "mine\nmore\n"
    changed = git(checkout, "status", "--porcelain").split()
    assert changed == (["M", "README", "??", "notes"] if how == "apply" else [])


@pytest.mark.long
def test_nothing_uncommitted_is_said(desk: Installation, checkout: Path) -> None:
    done = desk.qd("replica", "create", "--wait", "--with-uncommitted", cwd=checkout)
    assert (done.returncode, "There are no uncommitted changes." in done.stderr) == (0, True)


@pytest.mark.long
def test_a_service_that_is_killed_while_it_creates(desk: Installation, checkout: Path) -> None:
    (checkout / "new").write_text("new\n")
    for number in range(3):
        (checkout / "README").write_text(f"Edited {number}.\n")
        done = desk.qd("replica", "create", "--json", "--with-uncommitted", cwd=checkout)
        assert done.returncode == 0, done.stderr
        shop = Shop(desk, checkout, json.loads(done.stdout)["replica"]["id"])
        if number:  # in the middle, or just before the upload is removed
            steps = ("parts/*", "files/*")[number - 1 :]
            until(partial(has_one, desk.place(shop.id), steps), "a clone")
        desk.kill()
        desk.start()
        desk.reach(shop.id, "active")
        assert shop.run(CHANGES).splitlines() == [" M README", "?? new"]
        assert shop.run("cat README new") == f"Edited {number}.\nnew\n"


def has_one(place: Path, patterns: Sequence[str]) -> bool:
    """Whether a directory has a file of one of the patterns."""
    return any(True for pattern in patterns for _ in place.glob(pattern))


def state_of(place: Path) -> dict[str, Any]:
    """Everything of a repository; git may touch, not change, objects that it needs."""
    found = snapshot(place)
    return {
        name: kept[3] if name.startswith(".git/objects/") else kept for name, kept in found.items()
    }
