"""Kills in the middle of a push, a fetch and an update: everything can be done again."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.git.conftest import Shop, commit
from tests.git.remotes import bare_copy, http_remote, ssh_configuration, ssh_remote
from tests.support.git import git, make_repository
from tests.support.installation import Installation, block, command_of, pids, refused, runs
from tests.support.waiting import until
from tests.system.conftest import installed

WAITING = """#!/bin/sh
touch {place}/waiting
until [ -e {place}/go ]; do sleep 0.02; done
"""
WAITING_INSIDE = WAITING.format(place="/workspace").replace("\n", "\\n")
"""For `printf` in a replica."""


@pytest.fixture(scope="module")
def _own_deck() -> Iterator[Installation]:
    with installed() as made:
        person = made.base / "person"
        person.mkdir()
        made.variables["HOME"] = str(person)
        made.start()
        yield made


@pytest.fixture
def deck(_own_deck: Installation, require_tool: Callable[[str], str]) -> Installation:
    """A service of these tests' own, which they kill."""
    require_tool("bwrap")
    _own_deck.revive()
    return _own_deck


def hook(path: Path, place: str) -> None:
    """Write a hook that waits."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(WAITING.format(place=place))
    path.chmod(0o755)


def children() -> list[int]:
    """Return the processes that this one has started."""
    return [pid for pid in pids() if parent_of(pid) == os.getpid()]


def parent_of(pid: int) -> int | None:
    """Return the parent of a process; None when it has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def descendants(pid: int) -> list[int]:
    """Return a process and all that came from it."""
    found = [pid]
    for one in found:
        found += [child for child in pids() if parent_of(child) == one]
    return found


def replica_of(deck: Installation, source: Path, url: str | None = None, **options: Any) -> Shop:
    """Return a replica of a repository, which is reached at `url`."""
    environment = deck.environment_with(deck.connect(url or str(source)), **options)
    return Shop(deck, source, deck.create(environment))


def push(shop: Shop) -> httpx.Response:
    """Push the branch that is checked out."""
    return shop.deck.ask("POST", f"{shop.path}/shop/push", json={})


class Asked:
    """A request that is on its way, and may be cut off."""

    def __init__(self, deck: Installation, path: str, **body: Any) -> None:
        self._body = body
        self.answer: httpx.Response | None = None
        self._thread = threading.Thread(target=self._ask, args=(deck, path))
        self._thread.start()

    def _ask(self, deck: Installation, path: str) -> None:
        try:
            self.answer = deck.ask("POST", path, json=self._body)
        except httpx.HTTPError:
            return

    def ended(self) -> httpx.Response | None:
        """Wait for its end; None when there was no answer."""
        self._thread.join()
        return self.answer


@pytest.mark.long
@pytest.mark.parametrize("killed", ["service", "engine", "remote's objects", "remote's server"])
def test_a_push_that_was_killed_is_repeated(
    deck: Installation, tmp_path: Path, killed: str
) -> None:
    remote = bare_copy(make_repository(tmp_path / "first"), tmp_path / "shop.git")
    git(remote, "config", "http.receivepack", "true")
    hook(remote / "hooks" / "pre-receive", str(tmp_path))
    with http_remote(tmp_path, secured=False) as address:
        shop = replica_of(deck, remote, f"{address}/shop.git")
        shop.run("echo more > more; git add more; git commit -qm More")
        branch = shop.run("git branch --show-current").strip()
        asked = Asked(deck, f"{shop.path}/shop/push")
        until((tmp_path / "waiting").exists, "the remote's hook")
        if killed == "service":
            deck.kill()
            assert asked.ended() is None
            deck.start()
        elif killed == "engine":
            os.kill(deck.engine(shop.id), signal.SIGKILL)
            (tmp_path / "go").touch()
            answer = asked.ended()
            assert answer is not None and answer.status_code == 200, answer
            deck.reach(shop.id, "active")
        elif killed == "remote's server":
            for server in [one for one in children() if "http-backend" in command_of(one)]:
                os.killpg(server, signal.SIGKILL)
            answer = asked.ended()
            assert answer is not None and answer.status_code == 409, answer
        else:
            (remote / "objects").rename(tmp_path / "away")
            (tmp_path / "go").touch()
            answer = asked.ended()
            assert answer is not None and answer.status_code == 409, answer
            (tmp_path / "away").rename(remote / "objects")
        (tmp_path / "go").touch()
        # What was left of a killed one may still hold a lock at the remote.
        until(lambda: push(shop).status_code == 200, "the push")
        assert git(remote, "rev-parse", branch) == shop.run("git rev-parse HEAD").strip()
        git(remote, "fsck", "--strict")
        assert not list(deck.home.mirrors.glob(".outgoing-*"))
        deck.delete(shop.id)


@pytest.mark.long
@pytest.mark.parametrize("survives", [True, False])
def test_a_push_whose_ssh_server_was_killed_is_repeated(
    deck: Installation, tmp_path: Path, require_tool: Callable[[str], str], survives: bool
) -> None:
    remote = bare_copy(make_repository(tmp_path / "first"), tmp_path / "shop.git")
    hook(remote / "hooks" / "pre-receive", str(tmp_path))
    with ssh_remote(tmp_path, require_tool) as server:
        command = ssh_configuration(tmp_path / "ssh_config", server.key)
        settings = Path(deck.variables["HOME"], ".gitconfig")
        git(tmp_path, "config", "--file", str(settings), "core.sshCommand", command)
        url = server.url(remote)
        shop = replica_of(deck, remote, url)
        shop.run("echo more > more; git add more; git commit -qm More")
        before = git(remote, "for-each-ref")
        asked = Asked(deck, f"{shop.path}/shop/push")
        until((tmp_path / "waiting").exists, "the remote's hook")
        for pid in descendants(server.pid):
            if not survives or "sshd" in command_of(pid):  # else the remote's git goes on alone
                with suppress(ProcessLookupError):  # it ended with its parent
                    os.kill(pid, signal.SIGKILL)
        answer = asked.ended()
        assert answer is not None
        refused(answer, 409, "CONFLICT", f"The connection to {url} was lost during the push.")
        assert git(remote, "for-each-ref") == before
    (tmp_path / "go").touch()
    refused(push(shop), 409, "CONFLICT", f"{url} cannot be reached.", "Connection refused")
    with ssh_remote(tmp_path, require_tool, server.port):
        until(lambda: push(shop).status_code == 200, "the push")
    branch = shop.run("git branch --show-current").strip()
    assert git(remote, "rev-parse", branch) == shop.run("git rev-parse HEAD").strip()
    git(remote, "fsck", "--strict")
    assert not list(deck.home.mirrors.glob(".outgoing-*"))
    deck.delete(shop.id)


@pytest.mark.long
@pytest.mark.parametrize("killed", ["service", "engine"])
def test_an_update_that_was_killed_leaves_no_half_rebase(
    deck: Installation, tmp_path: Path, killed: str
) -> None:
    shop = replica_of(deck, make_repository(tmp_path / "shop"))
    shop.run("for n in 1 2 3; do echo $n > f$n; git add .; git commit -qm $n; done; echo x > f1")
    theirs = commit(shop.checkout, "theirs", "theirs")
    shop.run(
        "mkdir -p .git/hooks; printf '" + WAITING_INSIDE + "' > .git/hooks/post-commit;"
        " chmod +x .git/hooks/post-commit; git stash -q"
    )
    asked = Asked(deck, f"{shop.path}/shop/update", strategy="rebase")
    until(lambda: "waiting" in shop.run("ls /workspace"), "the hook")
    if killed == "service":
        deck.kill()
        asked.ended()
        deck.start()
    else:
        shop.sleep()
        asked.ended()
    done: dict[str, Any] = {}

    def again() -> bool:
        if deck.replica(shop.id)["status"] == "active":
            shop.run("touch /workspace/go")
        answer = deck.ask("POST", f"{shop.path}/shop/update", json={"strategy": "rebase"})
        done.update(answer.json())
        return answer.status_code == 200

    if killed == "engine":
        (deck.place(shop.id) / "files" / "go").touch()
    until(again, "the update")
    if killed == "engine":
        deck.post(f"/v1/replica/{shop.id}/wake", status=202)
        deck.reach(shop.id, "active")
    assert done["base"] == theirs
    state = shop.state()
    assert (state["operation"], state["ahead"], state["behind"]) == (None, 3, 0)
    assert shop.run("git log --format=%s | head -3").split() == ["3", "2", "1"]
    deck.delete(shop.id)


@pytest.mark.long
@pytest.mark.parametrize("killed", ["service", "engine"])
def test_a_fetch_that_was_killed_is_repeated(
    deck: Installation, tmp_path: Path, killed: str
) -> None:
    shop = replica_of(deck, make_repository(tmp_path / "shop"))
    shop.run("head -c 16000000 /dev/urandom > f; git add .; git commit -qm Large")
    branch = shop.run("git branch --show-current").strip()
    ended = threading.Event()
    said: list[str] = []

    def fetch() -> None:
        done = deck.qd("replica", "fetch", shop.id, cwd=shop.checkout)
        said.append(f"{done.returncode} {done.stderr}")
        ended.set()

    thread = threading.Thread(target=fetch)
    thread.start()
    pack = shop.checkout / ".git" / "objects" / "pack"
    until(lambda: list(pack.glob("tmp_pack_*")) or ended.is_set(), "the pack")
    if killed == "service":
        deck.kill()
        thread.join()
        deck.start()
    else:
        os.kill(deck.engine(shop.id), signal.SIGKILL)
        thread.join()
        deck.reach(shop.id, "active")
    if said[0].startswith("1"):
        assert branch not in git(shop.checkout, "branch")
    done = deck.qd("replica", "fetch", shop.id, cwd=shop.checkout)
    assert done.returncode == 0, done.stderr
    assert git(shop.checkout, "rev-parse", branch) == shop.run("git rev-parse HEAD").strip()
    git(shop.checkout, "fsck", "--strict")
    deck.delete(shop.id)


@pytest.mark.long
@pytest.mark.parametrize("killed", ["service", "engine", "agent", "remote"])
def test_a_fetch_of_the_source_that_was_killed_is_repeated(
    deck: Installation, tmp_path: Path, killed: str
) -> None:
    checkout = make_repository(tmp_path / "first")
    remote = bare_copy(checkout, tmp_path / "shop.git")
    pack = tmp_path / "pack"
    pack.write_text(WAITING.format(place=tmp_path) + 'exec "$@"\n')
    pack.chmod(0o755)
    settings: dict[str, str] = {}
    with http_remote(tmp_path, secured=False, settings=settings) as address:
        shop = replica_of(deck, remote, f"{address}/shop.git")
        theirs = commit(checkout, "theirs", "theirs\n")
        git(checkout, "push", "-q", str(remote), "main")
        settings["uploadpack.packObjectsHook"] = str(pack)
        shop.run("true; setsid git fetch origin > /tmp/log 2>&1 & echo $! > /tmp/pid")
        until((tmp_path / "waiting").exists, "the remote's pack")
        match killed:
            case "service":
                deck.kill()
                deck.start()
            case "engine":
                os.kill(deck.engine(shop.id), signal.SIGKILL)
            case "agent":
                shop.run("kill -9 -$(cat /tmp/pid)")
            case _:
                for server in [one for one in children() if "http-backend" in command_of(one)]:
                    os.killpg(server, signal.SIGKILL)
                until(lambda: "fatal:" in shop.run("cat /tmp/log"), "git's error")
        (tmp_path / "go").touch()
        deck.reach(shop.id, "active")

        def again() -> bool:  # the service may not have noticed yet that the engine is gone
            fetch = ("git", "fetch", "origin")
            return deck.qd("replica", "exec", shop.id, "--", *fetch).returncode == 0

        until(again, "the fetch")
        assert shop.run("git rev-parse origin/main").strip() == theirs
        shop.run("git fsck --strict")
        done = deck.post(f"{shop.path}/shop/update", {})
        assert (done["base"], done["changed"]) == (theirs, True)
        deck.delete(shop.id)


@pytest.mark.long
def test_a_push_from_inside_whose_agent_was_killed_is_repeated(
    deck: Installation, tmp_path: Path
) -> None:
    remote = bare_copy(make_repository(tmp_path / "first"), tmp_path / "shop.git")
    git(remote, "config", "http.receivepack", "true")
    hook(remote / "hooks" / "pre-receive", str(tmp_path))
    with http_remote(tmp_path, secured=False) as address:
        shop = replica_of(deck, remote, f"{address}/shop.git", push="any")
        shop.run("git commit -q --allow-empty -m More")
        shop.run("true; setsid git push origin HEAD:pushed > log 2>&1 & echo $! > pid")
        until((tmp_path / "waiting").exists, "the remote's hook")
        shop.run("kill -9 -$(cat pid)")
        (tmp_path / "go").touch()

        def again() -> bool:
            done = deck.run(shop.id, "cd shop; git push origin HEAD:pushed")
            return done["exit_code"] == 0

        until(again, "the push")
        assert git(remote, "log", "-1", "--format=%s", "pushed") == "More"
        git(remote, "fsck", "--strict")
        until(lambda: not list(deck.home.mirrors.glob(".outgoing-*")), "the end of the first push")
        deck.delete(shop.id)


@pytest.mark.long
def test_a_commit_that_was_killed_with_its_engine_is_repeated(
    deck: Installation, tmp_path: Path
) -> None:
    shop = replica_of(deck, make_repository(tmp_path / "shop"))
    shop.run(
        "echo one > one; echo two > two; mkdir -p .git/hooks;"
        f" printf '{WAITING_INSIDE}' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"
    )
    body = {"message": "One", "paths": ["one"]}
    asked = Asked(deck, f"{shop.path}/shop/commit", **body)
    until(lambda: "waiting" in shop.run("ls /workspace"), "the hook")
    shop.sleep()
    asked.ended()
    (deck.place(shop.id) / "files" / "go").touch()
    done = deck.post(f"{shop.path}/shop/commit", body)
    assert done["commit"]["title"] == "One"
    deck.post(f"/v1/replica/{shop.id}/wake", status=202)
    deck.reach(shop.id, "active")
    assert shop.run("git show --format= --name-only").split() == ["one"]
    assert shop.state()["uncommitted"]["files"] == 1
    deck.delete(shop.id)


@pytest.mark.long
def test_a_rewind_that_was_killed_is_repeated(deck: Installation, tmp_path: Path) -> None:
    shop = replica_of(deck, make_repository(tmp_path / "shop"))
    deck.turn(shop.id, block("echo Closed. > README"))
    until(lambda: not deck.replica(shop.id)["chats"][0]["processing"], "rest")
    rewind = {"checkpoint": deck.get(f"/v1/replica/{shop.id}/checkpoints")["checkpoints"][0]["id"]}
    shop.run(
        f"printf '{WAITING_INSIDE}cat' > /workspace/slow; chmod +x /workspace/slow;"
        " git config filter.slow.smudge /workspace/slow; mkdir -p .git/info;"
        " echo 'README filter=slow' > .git/info/attributes"
    )
    asked = Asked(deck, f"/v1/replica/{shop.id}/rewind", **rewind)
    until(lambda: "waiting" in shop.run("ls /workspace"), "the filter")
    assert "index.lock" in shop.run("ls .git")
    deck.kill()
    assert asked.ended() is None
    deck.start()
    shop.run("touch /workspace/go")

    def again() -> bool:  # the other one may not have ended yet
        answer = deck.ask("POST", f"/v1/replica/{shop.id}/rewind", json=rewind)
        return answer.status_code == 200

    until(again, "the rewind")
    assert shop.run("cat README; git status --porcelain; ls .git/*.lock || true") == (
        "A shop.\nOpen.\nls: cannot access '.git/*.lock': No such file or directory\n"
    )
    deck.delete(shop.id)


@pytest.mark.long
@pytest.mark.parametrize("killed", ["engine", "commit of the agent"])
def test_an_agents_commit_that_was_killed_leaves_no_lock(
    deck: Installation, tmp_path: Path, killed: str
) -> None:
    shop = replica_of(deck, make_repository(tmp_path / "shop"))
    shop.run(
        "echo more > more; git add more; mkdir -p .git/hooks;"
        f" printf '{WAITING_INSIDE}' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit;"
        " setsid git commit -qam One > /dev/null 2>&1 & echo $! > /tmp/pid"
    )
    until(lambda: "waiting" in shop.run("ls /workspace"), "the hook")
    assert "index.lock" in shop.run("ls .git; rm .git/hooks/pre-commit")
    if killed == "engine":
        os.kill(deck.engine(shop.id), signal.SIGKILL)
        exec = (f"/v1/replica/{shop.id}/exec", {"command": "true"})
        until(lambda: deck.ask("POST", *exec).status_code == 200, "the next engine")
    else:
        shop.run("kill -9 -$(cat /tmp/pid)")
        answer = deck.ask("POST", f"{shop.path}/shop/commit", json={"message": "Two"})
        refused(answer, 409, "CONFLICT", "git refused this.", "index.lock': File exists")
        shop.sleep()
        deck.post(f"/v1/replica/{shop.id}/wake", status=202)
        deck.reach(shop.id, "active")
    deck.post(f"{shop.path}/shop/commit", {"message": "Two"})
    assert shop.run("git log -1 --format=%s").strip() == "Two"
    deck.delete(shop.id)


@pytest.mark.long
def test_a_git_that_waits_for_a_remote_ends_after_its_service(
    deck: Installation, tmp_path: Path
) -> None:
    command = tmp_path / "ssh"
    hook(command, str(tmp_path))
    settings = Path(deck.variables["HOME"], ".gitconfig")
    git(tmp_path, "config", "--file", str(settings), "core.sshCommand", str(command))
    try:
        asked = Asked(deck, "/v1/replica/repositories", url="ssh://me@localhost/shop.git")
        until((tmp_path / "waiting").exists, "the remote")
        waiting = [pid for pid in pids() if str(command) in command_of(pid)]
        deck.kill()
        assert asked.ended() is None
        assert waiting and any(map(runs, waiting))
        assert list(deck.home.mirrors.glob(".new-*"))
        deck.start()
        assert not any(map(runs, waiting))
        until(lambda: not list(deck.home.mirrors.glob(".new-*")), "the end of the mirror")
    finally:
        (tmp_path / "go").touch()
        settings.unlink()


@pytest.mark.long
@pytest.mark.parametrize("own_commit", [False, True])
def test_an_update_that_was_killed_while_it_wrote_files_is_repeated(
    deck: Installation, tmp_path: Path, own_commit: bool
) -> None:
    checkout = make_repository(tmp_path / "shop")
    commit(checkout, "gone", "gone\n")
    commit(checkout, "old", "old\n")
    shop = replica_of(deck, checkout)
    shop.run(
        f"printf '{WAITING_INSIDE}cat' > /workspace/slow; chmod +x /workspace/slow;"
        " git config filter.slow.smudge /workspace/slow; mkdir -p .git/info;"
        " echo 'slow filter=slow' > .git/info/attributes; echo Closed. > README; echo own > own"
    )
    if own_commit:
        shop.run("echo mine > mine; git add mine; git commit -qm Mine")
    for name in ("new", "old", "slow"):
        (checkout / name).write_text("theirs\n")
    git(checkout, "rm", "-q", "gone")
    git(checkout, "add", ".")
    git(checkout, "commit", "-qm", "Theirs")
    asked = Asked(deck, f"{shop.path}/shop/update")
    until(lambda: "waiting" in shop.run("ls /workspace"), "the filter")
    assert shop.run("cat new") == "theirs\n"
    deck.kill()
    asked.ended()
    deck.start()
    shop.run("touch /workspace/go")
    done: list[httpx.Response] = []

    def again() -> bool:  # the other one may not have ended yet
        done.append(deck.ask("POST", f"{shop.path}/shop/update", json={}))
        return "is running" not in done[-1].text

    until(again, "the update")
    assert done[-1].status_code == 200, done[-1].text
    assert shop.state()["behind"] == 0
    assert shop.run("cat new old slow; ls gone || true").startswith("theirs\n" * 3)
    assert shop.run("git status --porcelain") == " M README\n?? own\n"
    deck.delete(shop.id)
