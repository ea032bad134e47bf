"""Pull requests of a replica's branch, from the push to the merge."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.git.hosts_double import HOST_A, HOST_B, SHOP, HostsDouble, Refusal
from tests.support.git import git, make_repository
from tests.support.installation import Follower, Installation, refused
from tests.support.waiting import until
from tests.system.conftest import installed


@pytest.fixture(scope="module")
def _hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostsDouble]:
    served = tmp_path_factory.mktemp("served")
    with HostsDouble.running() as double:
        double.serve(make_repository(served / "work"), served)
        yield double


@pytest.fixture(scope="module")
def _deck(_hosts: HostsDouble) -> Iterator[Installation]:
    """A service to whose git the addresses at the hosts mean directories here."""
    with installed() as made:
        made.variables = _hosts.variables(made.base)
        made.start()
        yield made


@pytest.fixture
def hosts(_hosts: HostsDouble) -> Iterator[HostsDouble]:
    yield _hosts
    _hosts.forget()


@dataclass(frozen=True)
class Replica:
    """A replica of a repository at a host, with one commit of its own."""

    deck: Installation
    hosts: HostsDouble
    host: str
    id: str
    branch: str

    @property
    def path(self) -> str:
        return f"/v1/replica/{self.id}/pull-requests"

    def create(self, **body: Any) -> dict[str, Any]:
        return self.deck.post(self.path, {"repository": "shop", **body})

    def list(self) -> list[dict[str, Any]]:
        return self.deck.get(self.path)["pull_requests"]

    def merge(self, number: int, **body: Any) -> dict[str, Any]:
        return self.deck.post(f"{self.path}/{number}/merge", body)

    def commit(self, title: str) -> None:
        script = f"cd shop && git commit -q --allow-empty -m '{title}'"
        done = self.deck.run(self.id, script)
        assert done["exit_code"] == 0, done

    def changed(self) -> None:
        """What the service knows of the host's repository is expired by a webhook."""
        body, headers = self.hosts.webhook()
        with self.deck.client(**headers) as client:
            answer = client.post("/v1/host-a/webhook", content=body)
            assert answer.status_code == 202, answer.text


@pytest.fixture
def deck(_deck: Installation, require_tool: Callable[[str], str]) -> Installation:
    """The running service."""
    require_tool("bwrap")
    _deck.revive()
    return _deck


def environment_at(deck: Installation, hosts: HostsDouble, host: str) -> str:
    """An environment with the repository at a host, which is connected once."""
    connected = deck.get("/v1/replica/repositories")["repositories"]
    url = f"{hosts.root(host)}/{SHOP}.git"
    known = next((one["id"] for one in connected if one["url"] == url), None)
    return deck.environment_with(known or deck.connect(url))


@pytest.fixture
def replica(
    request: pytest.FixtureRequest, deck: Installation, hosts: HostsDouble
) -> Iterator[Replica]:
    """A replica at host A, or at the host that a test is parametrized with."""
    host = getattr(request, "param", HOST_A)
    id = deck.create(environment_at(deck, hosts, host))
    branch = deck.run(id, "cd shop && git branch --show-current")["output"].strip()
    made = Replica(deck, hosts, host, id, branch)
    made.commit("Hoist the sails")
    yield made
    deck.delete(id)


both = pytest.mark.parametrize("replica", [HOST_A, HOST_B], indirect=True)


@pytest.mark.long
@both
def test_the_branch_is_pushed_and_a_pull_request_opened(replica: Replica) -> None:
    replica.commit("Trim the sails")
    name = replica.deck.replica(replica.id)["name"]
    with_events = Follower(replica.deck, replica.id)
    made = replica.create()
    head = replica.deck.get(f"/v1/replica/{replica.id}/git")["repositories"][0]["head"]
    (pull,) = replica.hosts.pulls.values()
    assert made == {
        "repository": "shop",
        "number": pull.number,
        "url": made["url"],
        "title": name,
        "state": "open",
        "draft": False,
        "base": "main",
        "head": replica.branch,
        "head_sha": head,
        "mergeable": True,
        "review": None,
        "unresolved_threads": 0,
        "checks": {"state": None, "failed": []},
    }
    assert made["url"].startswith(f"{replica.hosts.root(replica.host)}/{SHOP}/")
    assert pull.body == "- Hoist the sails\n- Trim the sails"
    assert replica.hosts.bare is not None
    assert git(replica.hosts.bare, "rev-parse", f"refs/heads/{replica.branch}") == head
    known = [{"repository": "shop", "number": pull.number, "url": made["url"]}]
    record = replica.deck.replica(replica.id)
    assert record["pull_requests"] == known
    assert record["repository_statuses"][0]["pr_urls"] == [made["url"]]

    def told() -> bool:
        return any(
            repo["prUrls"] == [made["url"]]
            for _, event in with_events.events
            if event["type"] == "repo.status.changed"
            for repo in event["payload"]["repos"]
        )

    until(told, "the event with the pull request")
    with_events.end()
    assert replica.list() == [made]


@pytest.mark.long
@both
def test_what_is_given_is_what_is_opened(replica: Replica) -> None:
    assert replica.hosts.bare is not None
    git(replica.hosts.bare, "branch", "-f", "next", "main")
    body = {"title": "Sails", "body": "Why:\nwind", "base": "next", "draft": True}
    made = replica.create(**body)
    (pull,) = replica.hosts.pulls.values()
    title = "Sails" if replica.host == HOST_A else "Draft: Sails"
    assert (pull.title, pull.body, pull.base, pull.draft) == (title, "Why:\nwind", "next", True)
    assert (made["base"], made["draft"], made["title"]) == ("next", True, title)


@pytest.mark.long
@both
def test_there_is_one_pull_request_of_a_branch(replica: Replica) -> None:
    with ThreadPoolExecutor(3) as threads:
        made = list(threads.map(lambda _: replica.create(), range(3)))
    assert {one["number"] for one in made} == set(replica.hosts.pulls)
    assert len(replica.hosts.requests("POST")) == 1
    replica.commit("Trim the sails")
    again = replica.create(title="Another title")
    assert again["number"] == made[0]["number"] and again["title"] == made[0]["title"]
    assert again["head_sha"] != made[0]["head_sha"]
    assert len(replica.hosts.pulls) == len(replica.hosts.requests("POST")) == 1
    replica.hosts.pulls[again["number"]].state = "closed"
    assert replica.create()["number"] != again["number"]
    assert [one["state"] for one in replica.list()] == ["open", "closed"]


@pytest.mark.long
@both
def test_one_that_was_opened_between_the_look_and_the_call(replica: Replica) -> None:
    listing = "/pulls" if replica.host == HOST_A else "/merge_requests"
    replica.hosts.refusals.append(Refusal(200, [], method="GET", end=listing))
    replica.hosts.add(replica.branch, sha=None)
    answer = replica.deck.ask("POST", replica.path, {"repository": "shop"})
    refused(answer, 400, "INVALID_REQUEST", "did not accept", "already exists")
    replica.hosts.refusals.clear()
    assert replica.create()["number"] in replica.hosts.pulls
    assert len(replica.hosts.pulls) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("replica", "method"), [(HOST_A, "POST"), (HOST_B, "GET")], indirect=["replica"]
)
def test_killed_after_the_host_has_opened_it(replica: Replica, method: str) -> None:
    """Once before the answer to the call has come, once before what was opened was looked at.

    That an earlier one is found is proven at each host above.
    """
    replica.hosts.held.add("POST")
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(replica.create)
        until(lambda: replica.hosts.pulls, "the pull request")
        if method == "GET":
            replica.hosts.held.add("GET")
            replica.hosts.gate.set()
            until(lambda: len(replica.hosts.requests("POST")) == 1, "the answer")
        replica.deck.kill()
        assert asking.exception(timeout=60) is not None
    replica.hosts.held.clear()
    replica.hosts.gate.set()
    replica.deck.start()
    replica.deck.reach(replica.id, "active")
    made = replica.create()
    assert list(replica.hosts.pulls) == [made["number"]]
    assert len(replica.hosts.requests("POST")) == 1
    assert [one["number"] for one in replica.deck.replica(replica.id)["pull_requests"]] == [
        made["number"]
    ]


@pytest.mark.long
def test_killed_after_the_host_has_merged_it(replica: Replica) -> None:
    made = replica.create()
    replica.hosts.held.add("PUT")
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(replica.merge, made["number"])
        until(lambda: replica.hosts.requests("PUT"), "the merge")
        replica.deck.kill()
        assert asking.exception(timeout=60) is not None
    replica.hosts.held.clear()
    replica.hosts.gate.set()
    replica.deck.start()
    assert replica.merge(made["number"])["state"] == "merged"
    assert len(replica.hosts.requests("PUT")) == 1


@pytest.mark.long
@both
def test_what_was_done_is_told_though_the_host_limits_requests(replica: Replica) -> None:
    one = "/pulls/" if replica.host == HOST_A else "/merge_requests/"
    number = replica.hosts.newest + 1
    limit = Refusal(429, None, {"Retry-After": "600"}, method="GET", end=f"{one}{number}")
    replica.hosts.refusals.append(limit)
    made = replica.create()
    assert (made["number"], made["state"], made["mergeable"]) == (number, "open", None)
    assert replica.deck.replica(replica.id)["pull_requests"][0]["url"] == made["url"]
    answer = replica.deck.ask("GET", replica.path)
    refused(answer, 429, "RATE_LIMITED", "limits requests. Try again after")
    assert 500 < int(answer.headers["Retry-After"]) <= 600
    # The limit is kept in memory: a service that starts again does not hold it against other tests.
    replica.deck.kill()
    replica.deck.start()


@pytest.mark.long
@both
def test_what_is_known_stays_known(replica: Replica) -> None:
    made = replica.create()
    replica.commit("Trim the sails")
    until(
        lambda: replica.deck.get(f"/v1/replica/{replica.id}/git")["repositories"][0]["ahead"] == 2,
        "the new commit",
    )
    assert replica.deck.replica(replica.id)["pull_requests"][0]["url"] == made["url"]
    replica.deck.run(replica.id, "cd shop && echo new > new")
    replica.deck.post(f"/v1/replica/{replica.id}/sleep")
    replica.deck.post(f"/v1/replica/{replica.id}/git/shop/commit", {"message": "Asleep"})
    assert replica.deck.replica(replica.id)["pull_requests"][0]["url"] == made["url"]
    again = replica.create()
    head = replica.deck.get(f"/v1/replica/{replica.id}/git")["repositories"][0]["head"]
    assert (again["number"], again["head_sha"]) == (made["number"], head)
    assert [one["number"] for one in replica.list()] == [made["number"]]
    assert replica.deck.replica(replica.id)["status"] == "sleeping"
    # Of a branch that is not checked out any more.
    replica.deck.post(f"/v1/replica/{replica.id}/wake", status=202)
    replica.deck.reach(replica.id, "active")
    replica.deck.run(replica.id, "cd shop && git switch -q -c other")
    until(
        lambda: (
            replica.deck.get(f"/v1/replica/{replica.id}/git")["repositories"][0]["branch"]
            == "other"
        ),
        "the other branch",
    )
    assert replica.list()[0]["number"] == made["number"]
    assert replica.deck.replica(replica.id)["pull_requests"][0]["url"] == made["url"]


@pytest.mark.long
def test_one_that_somebody_else_opened_is_found_and_read_again_after_a_webhook(
    replica: Replica,
) -> None:
    replica.hosts.add("main")
    pull = replica.hosts.add(replica.branch)
    (found,) = replica.list()
    assert (found["number"], found["title"]) == (pull.number, "A title")
    record = replica.deck.replica(replica.id)
    assert [one["number"] for one in record["pull_requests"]] == [pull.number]
    count = len(replica.hosts.asked)
    pull.title = "Another title"
    assert replica.list()[0]["title"] == "A title" and len(replica.hosts.asked) == count
    replica.changed()
    assert replica.list()[0]["title"] == "Another title"
    assert 304 in [one.status for one in replica.hosts.asked[count:]]


@pytest.mark.long
@both
def test_merging(replica: Replica) -> None:
    """Only what was looked at, with the host's reason when it does not, and only once."""
    old = replica.create()
    replica.commit("Trim the sails")
    made = replica.create()
    assert made["number"] == old["number"]
    merge = f"{replica.path}/{made['number']}/merge"
    answer = replica.deck.ask("POST", merge, {"head_sha": old["head_sha"]})
    refused(answer, 409, "CONFLICT", "was not merged", "has changed since")
    assert not replica.hosts.requests("PUT")
    reason = {"message": "Base branch was modified"}
    for status in (405, 409, 422):
        replica.hosts.refusals[:] = [Refusal(status, reason, method="PUT")]
        answer = replica.deck.ask("POST", merge, {})
        refused(answer, 409, "CONFLICT", "was not merged", "Base branch was modified")
    # It did merge it, and the answer was lost.
    pull = replica.hosts.pulls[made["number"]]
    pull.state = "merged"
    assert replica.merge(made["number"])["state"] == "merged"
    pull.state = "open"
    replica.hosts.refusals.clear()
    before = len(replica.hosts.requests("PUT"))
    done = replica.merge(made["number"], method="squash", head_sha=made["head_sha"])
    assert (done["state"], done["number"], done["mergeable"]) == ("merged", made["number"], None)
    assert replica.merge(made["number"], repository="shop")["state"] == "merged"
    (asked,) = replica.hosts.requests("PUT")[before:]
    assert asked.body["sha"] == made["head_sha"]
    assert replica.list()[0]["state"] == "merged"
    told = [one for one in replica.deck.history(replica.id) if one["type"] == "git-operation"]
    url, title = made["url"], made["title"]
    pushed = [
        ("push", f"Pushed {replica.branch} ({one['head_sha'][:8]}) to the source of shop")
        for one in (old, made)
    ]
    merged = ("merge", f"Merged pull request {made['number']} of shop: {title} ({url})")
    opened = ("pull_request", f"Opened pull request {made['number']} of shop: {title} ({url})")
    assert [(one["payload"]["operation"], one["payload"]["text"]) for one in told] == [
        *(pushed[0], opened, pushed[1], merged)
    ]


@pytest.mark.long
def test_only_its_own_are_merged(replica: Replica) -> None:
    theirs = replica.hosts.add("theirs")
    answer = replica.deck.ask("POST", f"{replica.path}/{theirs.number}/merge", {})
    refused(answer, 404, "NOT_FOUND", f"no pull request {theirs.number}")
    mine = replica.hosts.add(replica.branch, state="closed")
    answer = replica.deck.ask("POST", f"{replica.path}/{mine.number}/merge", {})
    refused(answer, 409, "CONFLICT", "was not merged", "closed")
    answer = replica.deck.ask("POST", f"{replica.path}/1/merge", {"repository": "other"})
    refused(answer, 404, "NOT_FOUND", "no repository other", "shop")


@pytest.mark.long
def test_work_is_not_pushed_without_a_branch_of_its_own(replica: Replica) -> None:
    bare = replica.hosts.bare
    assert bare is not None
    before = git(bare, "for-each-ref")
    for script, base in (
        ("true", {"base": replica.branch}),
        ("git switch -q main", {}),
        ("git checkout -q --detach", {}),
    ):
        replica.deck.run(replica.id, f"cd shop && {script}")
        replica.commit("Trim the sails")
        answer = replica.deck.ask("POST", replica.path, {"repository": "shop", **base})
        refused(answer, 409, "CONFLICT", "its own branch")
        assert git(bare, "for-each-ref") == before and not replica.hosts.pulls


@pytest.mark.long
def test_a_push_that_is_refused_opens_nothing(replica: Replica) -> None:
    replica.create()
    (pull,) = replica.hosts.pulls.values()
    pull.state = "closed"
    replica.deck.run(replica.id, "cd shop && git commit -q --allow-empty --amend -m Other")
    answer = replica.deck.ask("POST", replica.path, {"repository": "shop"})
    refused(answer, 409, "CONFLICT", "")
    assert len(replica.hosts.pulls) == 1


@pytest.mark.long
def test_a_number_of_several_repositories(replica: Replica) -> None:
    deck = replica.deck
    connected = deck.get("/v1/replica/repositories")["repositories"]
    urls = [f"{replica.hosts.root(host)}/{SHOP}.git" for host in (HOST_A, HOST_B)]
    known = {one["url"]: one["id"] for one in connected}
    body = {
        "name": f"both {uuid4()}",
        "repositories": [known.get(url) or deck.connect(url) for url in urls],
    }
    group = deck.post("/v1/replica/repository-sets", body, 201)["repository_set"]
    body = {"name": f"with {uuid4()}", "repository_set_id": group["id"]}
    id = deck.create(deck.post("/v1/environments", body, 201)["environment"]["id"])
    path = f"/v1/replica/{id}/pull-requests"
    states = deck.get(f"/v1/replica/{id}/git")["repositories"]
    first, second = (one["repository"] for one in states)
    pull = replica.hosts.add(states[0]["branch"])
    found = deck.get(path)["pull_requests"]
    assert [(one["repository"], one["number"]) for one in found] == [
        (first, pull.number),
        (second, pull.number),
    ]
    answer = deck.ask("POST", f"{path}/{pull.number}/merge", {})
    refused(answer, 400, "INVALID_REQUEST", "Several repositories", f"{first}, {second}")
    done = deck.qd("replica", "pr", id, "--merge", "merge")
    assert done.returncode == 2 and "--repository" in done.stderr
    done = deck.qd("replica", "pr", id, "--merge", "merge", "--repository", second)
    assert done.returncode == 0 and "merged" in done.stdout, done.stderr
    deck.delete(id)


@pytest.mark.long
def test_a_local_path_has_no_pull_requests(deck: Installation, tmp_path: Path) -> None:
    checkout = make_repository(tmp_path / "shop")
    id = deck.create(deck.environment_with(deck.connect(str(checkout))))
    path = f"/v1/replica/{id}/pull-requests"
    for method, body in (("GET", None), ("POST", {"repository": "shop"})):
        answer = deck.ask(method, path, body)
        refused(answer, 409, "CONFLICT", "qd replica fetch, qd replica apply or qd replica merge")
    refused(deck.ask("POST", f"{path}/7/merge", {}), 409, "CONFLICT", "URL of the remote")
    done = deck.qd("replica", "pr", id)
    assert done.returncode == 1 and "qd replica fetch" in done.stderr
    deck.delete(id)
    plain = deck.create()
    assert deck.get(f"/v1/replica/{plain}/pull-requests") == {"pull_requests": []}
    deck.delete(plain)


@pytest.mark.long
def test_a_host_without_a_token(hosts: HostsDouble, require_tool: Callable[[str], str]) -> None:
    require_tool("bwrap")
    with installed() as deck:
        lines = [f'[url "file://{hosts.bare.parents[1]}/"]', f"\tinsteadOf = {hosts.root(HOST_A)}/"]
        (deck.base / ".gitconfig").write_text("\n".join(lines) + "\n")
        deck.variables = {"HOME": str(deck.base), "QD_HOST_A_API_URL": hosts.api(HOST_A)}
        deck.start()
        id = deck.create(deck.environment_with(deck.connect(f"{hosts.root(HOST_A)}/{SHOP}.git")))
        answer = deck.ask("GET", f"/v1/replica/{id}/pull-requests")
        refused(answer, 409, "CONFLICT", "[host-a] of the configuration file, or QD_HOST_A_TOKEN")
        deck.variables = {"HOME": str(deck.base)}
        deck.stop()
        deck.start()
        answer = deck.ask("GET", f"/v1/replica/{id}/pull-requests")
        refused(answer, 409, "CONFLICT", "No host is configured for 127.0.0.1")
        assert not hosts.asked


def test_from_the_command_line(replica: Replica, tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    deck, name = replica.deck, replica.deck.replica(replica.id)["name"]
    assert "No pull requests" in deck.qd("replica", "pr", name, "--list").stderr
    replica.deck.run(replica.id, "cd shop && echo left > left")
    done = deck.qd("replica", "pr", name, "--title", "Sails", "--web", BROWSER=str(browser))
    assert done.returncode == 0, done.stderr
    (pull,) = replica.hosts.pulls.values()
    url = f"{replica.hosts.root(HOST_A)}/{SHOP}/pull/{pull.number}"
    assert f"shop #{pull.number}  Sails" in done.stdout and url in done.stdout
    assert "1 uncommitted file is not included" in done.stderr
    opened = tmp_path / "opened"
    until(lambda: opened.exists() and opened.read_text().strip() == url, "the browser")

    pull.title = "Sails\x1b]0;x\x07"
    pull.runs = [
        {"name": "lint", "status": "completed", "conclusion": "failure", "html_url": "https://x/l"}
    ]
    pull.threads = [False, True]
    replica.changed()
    shown = deck.qd("replica", "pr", name, "--list").stdout
    assert "\x1b" not in shown and "failed  lint  https://x/l" in shown
    assert "open, 1 unresolved thread, checks failing" in shown
    (told,) = json.loads(deck.qd("replica", "pr", name, "--list", "--json").stdout)["pull_requests"]
    assert told["checks"]["failed"] == [{"name": "lint", "url": "https://x/l"}]

    replica.commit("Trim the sails")
    done = deck.qd("replica", "pr", name, "--merge", "squash", "--json")
    assert json.loads(done.stdout)["state"] == "merged", done.stderr
    assert "Unpushed commits are not included" in done.stderr
    assert "merged" in deck.qd("replica", "pr", name, "--merge", "squash").stdout
    done = deck.qd("replica", "pr", name, "--merge", "squash", "--draft")
    assert done.returncode == 2 and "exclude each other" in done.stderr


COMMIT = "```sh\ngit commit -q --allow-empty -m 'Scrub the deck'\n```"


def run_of(
    deck: Installation, hosts: HostsDouble, on_success: str, host: str = HOST_A
) -> dict[str, Any]:
    """Run an automation on the shop; return the run once its work was published or has failed."""
    environment = environment_at(deck, hosts, host)
    body = {
        "name": f"a{uuid4().hex[:6]}",
        "prompt": COMMIT,
        "environment_id": environment,
        "config": {"on_success": on_success},
    }
    path = f"/v1/automations/{deck.post('/v1/automations', body, 201)['automation']['id']}"
    started = deck.ask("POST", f"{path}/trigger", json={}).json()
    run = f"{path}/executions/{started['execution_id']}"

    def read() -> dict[str, Any]:
        return deck.get(run)["execution"]

    found = until(lambda: (one := read())["published"] and one, f"the publication of {run}")
    until(lambda: read()["status"] == "completed", "the end of the run")
    deck.delete(found["workspace_id"])
    return found


@pytest.mark.long
def test_a_run_that_succeeded_pushes_its_work(deck: Installation, hosts: HostsDouble) -> None:
    found = run_of(deck, hosts, "push")
    (published,) = found["published"]
    assert published["repository"] == "shop" and published["error"] is None
    branch, bare = published["branch"], hosts.bare
    assert git(bare, "rev-parse", branch) == published["commit"]
    assert git(bare, "log", "-1", "--format=%s", branch) == "Scrub the deck"
    assert hosts.pulls == {}


@pytest.mark.long
@pytest.mark.parametrize("host", [HOST_A, HOST_B])
def test_a_run_opens_a_draft(deck: Installation, hosts: HostsDouble, host: str) -> None:
    (published,) = run_of(deck, hosts, "draft_pull_request", host)["published"]
    (pull,) = hosts.pulls.values()
    assert (pull.number, pull.draft, pull.head) == (
        published["number"],
        True,
        published["branch"],
    )
    assert published["url"]


@pytest.mark.long
def test_a_run_that_cannot_publish_says_why(deck: Installation, hosts: HostsDouble) -> None:
    hosts.refusals.append(Refusal(401, {"message": "Bad credentials"}, method="POST"))
    (published,) = run_of(deck, hosts, "pull_request")["published"]
    assert "QD_HOST_A_TOKEN" in published["error"] and hosts.pulls == {}
