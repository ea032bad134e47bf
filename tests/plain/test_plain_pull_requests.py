"""Pull requests in lines: the real service, real pushes, a double of the hosts."""

from collections.abc import Iterator

import pytest

from quarterdeck.local.home import Home
from tests.cli.conftest import new_installation, serving
from tests.git.hosts_double import FAILED, HOST_A, PASSED, SHOP, HostsDouble
from tests.plain.conftest import Shop, write_agent
from tests.support.git import git, make_repository

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Shop, HostsDouble]]:
    """A service that uses host A with a token, and a clone of the repository there."""
    base = tmp_path_factory.mktemp("hosted")
    base.chmod(0o755)
    with HostsDouble.running() as hosts:
        hosts.serve(make_repository(base / "source"), base)
        made = new_installation(base / "home")
        made.environment |= hosts.variables(base)
        write_agent(made, base)
        repository = base / "shop"
        git(base, "clone", "-q", str(hosts.bare), str(repository))
        git(repository, "remote", "set-url", "origin", f"{hosts.root(HOST_A)}/{SHOP}.git")
        here = Shop(made.home, made.environment, repository=repository)
        with serving(here):
            try:
                yield here, hosts
            finally:
                here.forget_others()
                here.qd("stop")


@pytest.mark.long
def test_one_is_opened_looked_at_and_merged(hosted: tuple[Shop, HostsDouble]) -> None:
    shop, hosts = hosted
    hosts.forget()
    shop.forget_others()
    url = f"{hosts.root(HOST_A)}/{SHOP}.git"
    with shop.plain() as talk:
        talk.until("Type help")
        talk.type("new", url, "scripted", "sails", ".")
        talk.until("Opened sails")
        talk.type("mend", "wait", "1", "wait", "commit", "Hoist the sails", "pr merge")
        talk.until("No pull request is open. Type pr to open one.")
        talk.type("pr", "no", "pr", "yes", "Sails", "They are up.", ".", "", "no", "pr")
        opened = talk.until("Pull request ")
        assert "Canceled." in opened
        assert "Base branch (Enter for main):" in opened
        (pull,) = hosts.pulls.values()
        assert (pull.title, pull.body, pull.base, pull.draft) == (
            "Sails",
            "They are up.",
            "main",
            False,
        )
        assert opened[-1] == f"Pull request {pull.number}: Sails"
        assert talk.until("/pull/")[-2:] == [
            "qd/sails into main: open.",
            f"{hosts.root(HOST_A)}/{SHOP}/pull/{pull.number}",
        ]
        pull.runs = [FAILED]
        hosts.tell(Home(shop.home).socket)
        talk.type("pr fix", "wait")
        talk.until("You: These checks of pull request")
        talk.until("Scripted: You said: These checks of pull request")
        pull.runs = [PASSED]
        hosts.tell(Home(shop.home).socket)
        talk.type("pr squash", "no", "pr squash", "yes", "pr", "no")
        merged = talk.until(f"Merged pull request {pull.number} of shop: Sails ")
        assert merged.count("Merge it into main by squash? yes or no:") == 2
        assert "qd/sails into main: open, checks passing." in merged
        assert "qd/sails into main: merged." in talk.until("Push the branch and open one?")
        assert pull.state == "merged"
        talk.until("Canceled.")
        assert talk.finish() == 0
