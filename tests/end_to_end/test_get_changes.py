"""Work of an agent gets into the checkout that the cockpit was started in, in a real terminal."""

import subprocess

import pytest

from tests.end_to_end.conftest import Place
from tests.end_to_end.test_main_job import create, to_list
from tests.support.git import GIT

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(300)]

MESSAGE = "```sh\rtouch fixed\rgit add fixed\rgit commit -qm Fixed\recho more >> README\r```"


def git(place: Place, *arguments: str) -> str:
    """Run git in the checkout; return what it printed."""
    command = [*GIT, *arguments]
    done = subprocess.run(command, cwd=place.repository, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (120, 40)])
def test_the_branch_is_fetched_and_the_changes_are_applied(
    place: Place, columns: int, lines: int
) -> None:
    with place.cockpit(columns, lines) as program:
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
