"""A pull request from the branch to the merge, in a real terminal, at a double of the source host."""

import pytest

from quarterdeck.local.home import Home
from tests.end_to_end.conftest import Place
from tests.git.hosts_double import FAILED, HOST_A, PASSED, SHOP, HostsDouble

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(300)]

ESCAPE = "\x1b"
CTRL_S = "\x13"
MESSAGE = "```sh\ntouch fixed\ngit add fixed\ngit commit -qm Fixed\n```"


@pytest.mark.long
def test_a_red_pull_request_is_made_green_and_merged(place: Place) -> None:
    with HostsDouble.running() as hosts:
        served = place.repository.parent / "served"
        served.mkdir()
        hosts.serve(place.repository, served)
        place.variables = hosts.variables(served)
        socket = Home(place.home).socket
        with place.cockpit(120, 40) as program:
            program.wait_for("online")
            url = f"{hosts.root(HOST_A)}/{SHOP}.git"
            place.qd("replica", "create", "--repo", url, "--name", "fix-shop", "-m", MESSAGE)
            program.wait_for("ran without an error", 60)

            program.type("G")
            program.wait_for("Open a pull request of qd/fix-shop")
            program.wait_for("1 commit ahead of main")
            program.type("o")
            program.wait_for("Open a pull request: fix-shop")
            program.type(CTRL_S)
            program.wait_for("Opened #7")
            (pull,) = hosts.pulls.values()
            assert (pull.head, pull.base, pull.body) == ("qd/fix-shop", "main", "- Fixed")

            pull.runs = [FAILED]
            hosts.tell(socket)
            program.type("r")
            program.wait_for("✗ 1 check failed")
            program.type(ESCAPE)
            program.wait_gone("Pull request: fix-shop")
            program.type(ESCAPE)
            program.wait_gone("Get changes: fix-shop")
            program.wait_for("#7 ✗1")
            program.type("F")
            program.wait_for("Asked the agent to fix lint.")
            # On the screen the agent's answer may have scrolled it away.
            program.wait(
                lambda: (
                    "lint: https://ci.invalid/lint"
                    in place.qd("replica", "history", "fix-shop").stdout
                )
            )

            pull.runs = [PASSED]
            hosts.tell(socket)
            program.type("P")
            program.wait_for("✓ checks passed")
            program.wait_for("Merge into main")
            program.type("m")
            program.wait_for("Merge #7 of shop?")
            program.type("n")
            program.wait_gone("Merge #7 of shop?")
            program.type(ESCAPE)
            program.wait_for("#7 ✓")

            program.type("P")
            program.wait_for("Merge into main")
            program.type("m")
            program.wait_for("Merge #7 of shop?")
            program.type("y")
            program.wait_for("Merged #7 into main.")
            assert pull.state == "merged"
            program.type(ESCAPE)
            program.wait_gone("Pull request: fix-shop")
            program.wait_for("#7 merged")
            program.type("q")
            assert program.finish() == 0
