"""Git operations from the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.git.conftest import Shop, commit
from tests.support.git import git, make_repository
from tests.support.program import Program


@pytest.mark.long
def test_a_patch_is_piped_into_git_apply(shop: Shop, tmp_path: Path) -> None:
    shop.run("echo new > new && printf '\\0' > binary")
    name = shop.deck.replica(shop.id)["name"]
    patch = shop.deck.qd("replica", "diff", name)
    assert patch.returncode == 0, patch.stderr
    copy = make_repository(tmp_path / "copy")
    subprocess.run(["git", "apply"], cwd=copy, input=patch.stdout, text=True, check=True)
    assert (copy / "new").read_text() == "new\n" and (copy / "binary").read_bytes() == b"\0"


@pytest.mark.long
def test_state_commit_and_update(shop: Shop) -> None:
    shop.run("echo new > new; echo other > other")
    name = shop.deck.replica(shop.id)["name"]
    done = shop.deck.qd("replica", "commit", name, "new", "-m", "Add new")
    assert done.returncode == 0 and "Add new" in done.stdout, done.stderr
    shown = shop.deck.qd("replica", "git", name).stdout
    assert "1 ahead, 0 behind" in shown and "uncommitted 1 file, +1 -0" in shown
    (state,) = json.loads(shop.deck.qd("replica", "git", name, "--json").stdout)["repositories"]
    assert state["ahead"] == 1
    theirs = commit(shop.checkout, "theirs", "theirs\n")
    done = shop.deck.qd("replica", "update", name, "--rebase", "--autostash", "--json")
    assert json.loads(done.stdout)["base"] == theirs, done.stderr
    done = shop.deck.qd("replica", "update", name)
    assert (done.returncode, done.stderr) == (0, "Already up to date.\n")
    commit(shop.checkout, "new", "theirs too\n")
    done = shop.deck.qd("replica", "update", name)
    assert done.returncode == 1 and "Conflicts: new." in done.stderr
    done = shop.deck.qd("replica", "commit", name, "new")
    assert done.returncode == 1 and "nothing to commit" in done.stderr


def test_an_update_without_its_source_does_not_blame_uncommitted_changes(shop: Shop) -> None:
    shop.run("echo mine >> README")
    shop.checkout.rename(shop.checkout.with_name("away"))
    done = shop.deck.qd("replica", "update", shop.id)
    assert done.returncode == 1 and "could not be fetched" in done.stderr
    assert "--autostash" not in done.stderr


def test_a_refused_update_names_the_option_that_stashes_changes(shop: Shop) -> None:
    shop.run("echo mine >> README")
    commit(shop.checkout, "README", "theirs\n")
    done = shop.deck.qd("replica", "update", shop.id)
    assert done.returncode == 1 and "overwritten by merge: README" in done.stderr
    assert "Commit the changes, or add --autostash." in done.stderr
    done = shop.deck.qd("replica", "update", shop.id, "--autostash")
    assert done.returncode == 1 and "conflict with it in README." in done.stderr
    assert "stash" in done.stderr


@pytest.mark.long
def test_a_repository_has_to_be_named_where_there_are_several(shop: Shop) -> None:
    done = shop.deck.qd("replica", "diff", shop.id, "--repository", "other")
    assert done.returncode == 1 and "no repository other" in done.stderr


@pytest.mark.long
def test_a_branch_is_fetched_into_the_repository_here(shop: Shop, tmp_path: Path) -> None:
    shop.run("echo more > more; git add more; git commit -qm More; echo left > left")
    branch = shop.run("git branch --show-current").strip()
    before = git(shop.checkout, "status", "--porcelain", "--branch")
    done = shop.deck.qd("replica", "fetch", shop.id, cwd=shop.checkout)
    assert done.returncode == 0, done.stderr
    assert f"Fetched {branch}." in done.stderr and "1 uncommitted file stays" in done.stderr
    assert git(shop.checkout, "log", "-1", "--format=%s", branch) == "More"
    assert git(shop.checkout, "status", "--porcelain", "--branch") == before
    assert not (shop.checkout / ".git" / "FETCH_HEAD").exists()

    shop.run("git commit -q --amend -m Other")
    done = shop.deck.qd("replica", "fetch", shop.id, cwd=shop.checkout)
    assert done.returncode == 1 and "--force" in done.stderr
    assert git(shop.checkout, "log", "-1", "--format=%s", branch) == "More"
    done = shop.deck.qd("replica", "fetch", shop.id, "--force", "--json", cwd=shop.checkout)
    told = json.loads(done.stdout)
    assert (told["branch"], told["uncommitted"]) == (branch, 1)
    assert git(shop.checkout, "rev-parse", branch) == told["commit"]

    git(shop.checkout, "switch", "-q", branch)
    shop.run("git commit -q --allow-empty -m Again")
    done = shop.deck.qd("replica", "fetch", shop.id, cwd=shop.checkout)
    assert done.returncode == 1 and "checked out" in done.stderr
    done = shop.deck.qd("replica", "fetch", shop.id, cwd=tmp_path)
    assert done.returncode == 2 and "is not in a git repository" in done.stderr


def test_changes_are_applied_and_a_branch_is_merged_here(shop: Shop) -> None:
    shop.run("echo more > more; git add more; git commit -qm More; echo left > left")
    done = shop.deck.qd("replica", "apply", shop.id, cwd=shop.checkout)
    assert (done.returncode, done.stdout.split()) == (0, ["left", "more"]), done.stderr
    assert git(shop.checkout, "status", "--porcelain").split() == ["??", "left", "??", "more"]
    (shop.checkout / "more").write_text("other\n")
    done = shop.deck.qd("replica", "merge", shop.id, cwd=shop.checkout)
    assert done.returncode == 1 and "Files: more." in done.stderr
    (shop.checkout / "more").write_text("more\n")  # as the merge leaves it
    done = shop.deck.qd("replica", "merge", shop.id, "--json", cwd=shop.checkout)
    told = json.loads(done.stdout)
    assert told["commit"] == git(shop.checkout, "rev-parse", "main"), done.stderr
    assert told["uncommitted"] == 1
    assert git(shop.checkout, "log", "-1", "--format=%s") == "More"
    record = shop.deck.get(f"/v1/replica/{shop.id}")["replica"]
    assert record["repository_statuses"][0]["ahead"] == 0
    done = shop.deck.qd("replica", "merge", shop.id, cwd=shop.checkout)
    assert "Already up to date" in done.stderr


@pytest.mark.long
def test_a_merge_is_told_when_the_service_ends_meanwhile(shop: Shop) -> None:
    shop.run("echo more > more; git add more; git commit -qm More")
    ends_it = f"sh -c 'kill -9 {shop.deck.pid}; cat'"
    git(shop.checkout, "config", "filter.end.smudge", ends_it)
    (shop.checkout / ".git" / "info" / "attributes").write_text("more filter=end\n")
    try:
        done = shop.deck.qd("replica", "merge", shop.id, "--json", cwd=shop.checkout)
    finally:
        shop.deck.revive()
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["commit"] == git(shop.checkout, "rev-parse", "main")


@pytest.mark.long
def test_the_place_of_the_files_is_told(shop: Shop) -> None:
    place = Path(shop.deck.qd("replica", "path", shop.id).stdout.strip())
    assert (place / "README").is_file()
    shop.deck.post(f"/v1/replica/{shop.id}/archive")
    done = shop.deck.qd("replica", "path", shop.id)
    assert done.returncode == 1 and "qd replica wake" in done.stderr


@pytest.mark.long
def test_work_that_would_be_lost_is_named(shop: Shop) -> None:
    shop.run("git commit -q --allow-empty -m More; echo left > left")
    words = [sys.executable, "-m", "quarterdeck", "replica", "rm", shop.id]
    place = {"environment": shop.deck.environment, "directory": shop.checkout}
    with Program(words, columns=110, lines=12, **place) as program:
        program.wait_for("1 commit never pushed, 1 file not committed in shop.")
        program.wait_for("with all files?")
        program.type("n\r")
        assert program.finish() != 0
    assert shop.deck.replica(shop.id)["id"] == shop.id
    done = shop.deck.qd("replica", "archive", shop.id)
    assert "1 commit never pushed, 1 file not committed in shop." in done.stderr
    assert "is archived." in done.stderr


@pytest.mark.long
def test_another_repository_is_warned_of(lasting: Shop, tmp_path: Path) -> None:
    lasting.run("echo more > more; git add more; git commit -qm More")
    git(tmp_path, "clone", "-q", str(lasting.checkout), "clone")
    for verb in ("fetch", "apply", "merge"):
        other = tmp_path / verb  # once fetched, it has the commits
        other.mkdir()
        git(other, "init", "-q")
        git(other, "commit", "-q", "--allow-empty", "-m", "Of another history")
        said = lasting.deck.qd("replica", verb, lasting.id, cwd=other).stderr
        warning = f"Warning: {other} is another repository: neither a clone of {lasting.checkout}"
        assert warning in said, said
        said = lasting.deck.qd("replica", verb, lasting.id, cwd=tmp_path / "clone").stderr
        assert "Warning" not in said, said


@pytest.mark.long
def test_the_changed_lines_of_each_file_are_counted(lasting: Shop, tmp_path: Path) -> None:
    assert lasting.deck.qd("replica", "diff", lasting.id, "--stat").stdout == ""
    lasting.run("mkdir d; seq 5 > 'd/a b'; printf 'a\\0b' > binary; sed -i 1d README")
    git(tmp_path, "init", "-q")
    shown = lasting.deck.qd("replica", "diff", lasting.id, "--stat", cwd=tmp_path)
    assert (
        "d/a b" in shown.stdout and "3 files changed, 5 insertions(+), 1 deletion" in shown.stdout
    )
    told = lasting.deck.qd("replica", "diff", lasting.id, "--stat", "--json", cwd=tmp_path)
    assert json.loads(told.stdout) == {
        "files": [
            {"path": "README", "added": 0, "removed": 1},
            {"path": "binary", "added": None, "removed": None},
            {"path": "d/a b", "added": 5, "removed": 0},
        ]
    }
