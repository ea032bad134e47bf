"""git reaches a configured source host with its token, when the person has no credentials for it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.git.conftest import Shop
from tests.git.remotes import bare_copy, credential_helper, http_remote
from tests.support.git import git, make_repository
from tests.support.installation import Installation, free_port, refused
from tests.system.conftest import installed

TOKEN = "planted-token"
PORT = free_port()
"""Of the host: of its API, and of git over HTTP."""
LOGIN = f"x-access-token:{TOKEN}"


@pytest.fixture(scope="module")
def deck(require_tool: Callable[[str], str]) -> Iterator[Installation]:
    """An installation with a token for 127.0.0.1, and a person's home."""
    require_tool("bwrap")
    with installed() as made:
        home = made.base / "person"
        home.mkdir()
        made.variables["HOME"] = str(home)
        made.variables["QD_HOST_A_API_URL"] = f"http://127.0.0.1:{PORT}/api"
        made.variables["QD_HOST_A_TOKEN"] = TOKEN
        made.start()
        yield made


@pytest.fixture
def configuration(deck: Installation) -> Iterator[Path]:
    """The person's configuration of git."""
    path = Path(deck.variables["HOME"]) / ".gitconfig"
    yield path
    path.unlink(missing_ok=True)


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """A bare repository that can be pushed to, which notes all command lines meanwhile."""
    made = bare_copy(make_repository(tmp_path / "first"), tmp_path / "shop.git")
    git(made, "config", "http.receivepack", "true")
    hook = made / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\nps axww -o args >> {tmp_path}/commands\n")
    hook.chmod(0o755)
    return made


@pytest.mark.long
def test_the_token_serves_everything_and_is_kept_nowhere(
    deck: Installation, configuration: Path, remote: Path, tmp_path: Path
) -> None:
    stored = tmp_path / "stored"
    git(
        tmp_path,
        "config",
        "--file",
        str(configuration),
        "credential.helper",
        f"store --file {stored}",
    )
    with http_remote(tmp_path, login=LOGIN, port=PORT) as address:
        environment = deck.environment_with(deck.connect(f"{address}/shop.git"), push="any")
        shop = Shop(deck, remote, deck.create(environment))
        shop.run("git fetch -q; git commit -q --allow-empty -m More; git push -q origin HEAD:main")
        assert git(remote, "log", "-1", "--format=%s", "main") == "More"
        shop.run("git commit -q --allow-empty -m Again")
        head = shop.run("git rev-parse HEAD").strip()
        assert deck.post(f"{shop.path}/shop/push", {})["commit"] == head
        deck.post(f"{shop.path}/shop/update", {})
        looked = "env; ps axeww; grep -rs planted-toke[n] /home /workspace /run /tmp /etc || true"
        assert TOKEN not in shop.run(looked)
        assert not stored.exists()
    commands = (tmp_path / "commands").read_text()
    assert "send-pack" in commands or "remote-http" in commands
    assert TOKEN not in commands
    kept = [deck.log, *(one for one in deck.home.root.rglob("*") if one.is_file())]
    assert not [one for one in kept if TOKEN.encode() in one.read_bytes()]
    assert TOKEN not in str(deck.history(shop.id))
    deck.delete(shop.id)


@pytest.mark.long
def test_a_credential_helper_that_answers_comes_first(
    deck: Installation, configuration: Path, remote: Path, tmp_path: Path
) -> None:
    helper = credential_helper(tmp_path / "helper")
    git(tmp_path, "config", "--file", str(configuration), "credential.helper", str(helper))
    given: list[str] = []
    with http_remote(tmp_path, given=given, port=PORT) as address:
        deck.connect(f"{address}/shop.git")
    assert given == []


def test_another_host_does_not_get_the_token(
    deck: Installation, remote: Path, tmp_path: Path
) -> None:
    given: list[str] = []
    with http_remote(tmp_path, given=given, port=PORT) as address:
        url = f"{address.replace('127.0.0.1', 'localhost')}/shop.git"
        answer = deck.ask("POST", "/v1/replica/repositories", json={"url": url})
        refused(answer, 400, "INVALID_REQUEST", "cannot read", "could not read")
    assert given == []


def test_another_port_of_the_host_does_not_get_the_token(
    deck: Installation, remote: Path, tmp_path: Path
) -> None:
    """In clear text nothing tells whose program listens there: it may be a replica's."""
    given: list[str] = []
    with http_remote(tmp_path, given=given) as address:
        answer = deck.ask("POST", "/v1/replica/repositories", json={"url": f"{address}/shop.git"})
        refused(answer, 400, "INVALID_REQUEST", "cannot read", "could not read")
    assert given == []


@pytest.mark.long
def test_a_token_that_the_host_refuses_is_not_shown(
    deck: Installation, remote: Path, tmp_path: Path
) -> None:
    given: list[str] = []
    with http_remote(tmp_path, given=given, port=PORT) as address:
        url = f"{address}/another.git"  # than those that other tests have connected
        answer = deck.ask("POST", "/v1/replica/repositories", json={"url": url})
        refused(answer, 400, "INVALID_REQUEST", "cannot read", "Authentication failed")
    assert given
    assert TOKEN not in answer.text + deck.log.read_text()
