"""An installation with a repository of its own for each test of git operations."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.git import git, make_repository
from tests.support.installation import Installation, block
from tests.system.conftest import installed


@dataclass(frozen=True)
class Shop:
    """A checkout, and a replica of it in which a command can be run."""

    deck: Installation
    checkout: Path
    id: str

    @property
    def path(self) -> str:
        """The address of the replica's git operations."""
        return f"/v1/replica/{self.id}/git"

    def run(self, script: str) -> str:
        """Run a script in the repository inside; return what it printed."""
        done = self.deck.run(self.id, f"cd shop && set -e && {script}")
        assert done["exit_code"] == 0, done
        return done["output"]

    def state(self) -> dict[str, Any]:
        """Return the state of the repository."""
        (one,) = self.deck.get(self.path)["repositories"]
        return one

    def sleep(self) -> None:
        """Put the replica to sleep."""
        self.deck.post(f"/v1/replica/{self.id}/sleep")


@pytest.fixture(scope="session")
def git_deck() -> Iterator[Installation]:
    """The installation, with a home and an SSH agent's socket of its own for the person."""
    with installed() as made:
        home = made.base / "person"
        home.mkdir()
        made.variables["HOME"] = str(home)
        made.variables["SSH_AUTH_SOCK"] = str(made.base / "agent.sock")
        made.start()
        yield made


@pytest.fixture
def person(git_deck: Installation) -> Iterator[Path]:
    """The person's home directory, whose git configuration a test may write."""
    home = Path(git_deck.variables["HOME"])
    yield home
    (home / ".gitconfig").unlink(missing_ok=True)


@pytest.fixture
def open_shop(
    git_deck: Installation, require_tool: Callable[[str], str]
) -> Iterator[Callable[..., Shop]]:
    """Makes replicas of repositories at any address; the repository is called `shop`."""
    require_tool("bwrap")
    made: list[str] = []

    def opened(url: str, **settings: str) -> Shop:
        environment = git_deck.environment_with(git_deck.connect(url), **settings)
        made.append(git_deck.create(environment))
        return Shop(git_deck, Path(url), made[-1])

    yield opened
    for id in made:
        git_deck.delete(id)


@pytest.fixture
def shop(open_shop: Callable[..., Shop], tmp_path: Path) -> Shop:
    """A replica of a repository with two commits."""
    return open_shop(str(make_repository(tmp_path / "shop")))


KEPT = "cp -a /workspace/shop /workspace/.kept"
RESTORED = "cd /workspace; find shop -mindepth 1 -delete; cp -a .kept/. shop; cd shop"


@pytest.fixture(scope="module")
def _lasting(
    git_deck: Installation,
    tmp_path_factory: pytest.TempPathFactory,
    require_tool: Callable[[str], str],
) -> Iterator[Shop]:
    require_tool("bwrap")
    checkout = make_repository(tmp_path_factory.mktemp("lasting") / "shop")
    id = git_deck.create(git_deck.environment_with(git_deck.connect(str(checkout))))
    made = Shop(git_deck, checkout, id)
    made.run(KEPT)
    yield made
    git_deck.delete(id)


@pytest.fixture
def lasting(_lasting: Shop) -> Iterator[Shop]:
    """A replica of the module, afterwards awake and with the repository that it had before.

    For tests that change nothing else of it, and not its checkout.
    """
    yield _lasting
    deck, id = _lasting.deck, _lasting.id
    if deck.replica(id)["status"] != "active":
        deck.post(f"/v1/replica/{id}/wake", status=202)
        deck.reach(id, "active")
    _lasting.run(RESTORED)


def commit(checkout: Path, name: str, text: str) -> str:
    """Commit a file on the checkout's branch; return the commit."""
    (checkout / name).write_text(text)
    git(checkout, "add", ".")
    git(checkout, "commit", "-q", "-m", f"Change {name}")
    return git(checkout, "rev-parse", "HEAD")


__all__ = ["Shop", "block", "commit", "git"]
