"""Work of an agent gets into the checkout that the cockpit was started in, in a real terminal."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Place
from tests.end_to_end.test_main_job import create, to_list
from tests.git.remotes import bare_copy, ssh_configuration, ssh_remote
from tests.support.git import GIT

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(300)]

COMMIT = "```sh\rtouch fixed\rgit add fixed\rgit commit -qm Fixed\r```"
MESSAGE = "```sh\rtouch fixed\rgit add fixed\rgit commit -qm Fixed\recho more >> README\r```"


def git(place: Place, *arguments: str) -> str:
    """Run git in the checkout; return what it printed."""
    command = [*GIT, *arguments]
    done = subprocess.run(command, cwd=place.repository, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.long
def test_the_branch_is_fetched_and_the_changes_are_applied(place: Place) -> None:
    with place.cockpit(80, 24) as program:
        create(program, MESSAGE, "fix-shop")
        program.wait_for("ran without an error", 60)
        to_list(program)
        program.wait_for("+1")
        program.type("G")
        program.wait_for("Get changes: fix-shop")
        program.wait_for("1 commit ahead of main")
        program.wait_for("(on main, clean)")
        program.type("f")
        program.wait_for("Fetched qd/fix-shop")
        assert git(place, "log", "-1", "--format=%s", "qd/fix-shop") == "Fixed"
        assert git(place, "status", "--porcelain") == ""
        assert git(place, "branch", "--show-current") == "main"

        program.type("a")
        program.wait_for("(on main, 2 uncommitted files)")
        program.wait_for("README, fixed.")
        assert git(place, "status", "--porcelain").split("\n") == ["M README", "?? fixed"]
        assert (place.repository / "README").read_text() == "A shop.\nmore\n"

        program.type("\x1b")
        program.wait_gone("Get changes: fix-shop")
        program.type("q")
        assert program.finish() == 0


@pytest.mark.long
def test_work_on_a_feature_branch_goes_to_a_remote_over_ssh(
    place: Place, tmp_path: Path, require_tool: Callable[[str], str]
) -> None:
    remote = bare_copy(place.repository, tmp_path / "shop.git")
    with ssh_remote(tmp_path, require_tool) as server:
        person = tmp_path / "gitconfig"
        command = ssh_configuration(tmp_path / "ssh_config", server.key)
        git(place, "config", "--file", str(person), "core.sshCommand", command)
        place.variables["GIT_CONFIG_GLOBAL"] = str(person)
        url = server.url(remote)
        git(place, "checkout", "-qb", "feature")
        git(place, "push", "-q", str(remote), "feature")
        git(place, "remote", "add", "origin", url)
        git(place, "fetch", "-q", str(remote), "feature:refs/remotes/origin/feature")
        (place.repository / "README").write_text("My shop.\n")
        (place.repository / "new").write_text("new\n")
        with place.cockpit(120, 40) as program:
            create(program, COMMIT, "fix-shop", (url, "2 files"))
            program.wait_for("ran without an error", 60)
            to_list(program)
            program.wait_for("↑1")
            program.type("G")
            program.wait_for("Get changes: fix-shop")
            program.wait_for("1 commit ahead of feature")
            program.wait_for("(on feature, 2 uncommitted files)")
            program.type("f")
            program.wait_for("Fetched qd/fix-shop")
            assert git(place, "log", "-1", "--format=%s", "qd/fix-shop") == "Fixed"
            assert git(place, "status", "--porcelain").split("\n") == ["M README", "?? new"]

            program.type("a")
            program.wait_for("(on feature, 3 uncommitted files)")
            assert (place.repository / "fixed").exists()
            assert (place.repository / "README").read_text() == "My shop.\n"

            program.type("p")
            program.wait_for("Pushed qd/fix-shop")
            log = ["log", "-1", "--format=%s", "qd/fix-shop"]
            assert git(place, f"--git-dir={remote}", *log) == "Fixed"
            program.type("\x1b")
            program.wait_gone("Get changes: fix-shop")
            program.type("q")
            assert program.finish() == 0
