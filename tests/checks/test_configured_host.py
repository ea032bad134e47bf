"""A source host that is set up in the configuration file, a pull request there, and its verdict."""

import hmac
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.automations.host_payloads import pull_request
from tests.checks.source_host import TOKEN_A, SourceHost
from tests.support.git import git, make_repository
from tests.support.installation import Installation, block
from tests.support.waiting import until
from tests.system.conftest import installed

SECRET = "what the two of us know"
BRANCH = "crane"
LOOK = """\
git fetch -q origin refs/pull/7/head
git show FETCH_HEAD:crane.txt
"""
REPORT = "qd check report --conclusion success --title 'Reads well' --summary 'No fault in it.'"


@pytest.fixture
def source(tmp_path: Path, source_host: SourceHost) -> SourceHost:
    """A host that has the repository `harbor/pier` and its pull request 7."""
    work = make_repository(tmp_path / "work")
    default = git(work, "branch", "--show-current")
    git(work, "checkout", "-q", "-b", BRANCH)
    (work / "crane.txt").write_text("it turns\n")
    git(work, "add", ".")
    git(work, "commit", "-q", "-m", "Mend the crane")
    git(work, "update-ref", "refs/pull/7/head", "HEAD")
    git(work, "checkout", "-q", default)
    git(work, "branch", "-q", "-D", BRANCH)
    bare = tmp_path / "served" / "harbor" / "pier.git"
    subprocess.run(["git", "clone", "-q", "--mirror", str(work), str(bare)], check=True)
    git(bare, "update-server-info")
    source_host.files = tmp_path / "served"
    return source_host


@pytest.fixture
def deck(source: SourceHost, require_tool: Callable[[str], str]) -> Iterator[Installation]:
    """A service that learned of the host from the configuration file."""
    require_tool("bwrap")
    require_tool("git")
    with installed() as made:
        made.home.root.mkdir()
        (made.home.root / "a.secret").write_text(f"{SECRET}\n")
        (made.home.root / "a.token").write_text(TOKEN_A)
        (made.home.root / "config.toml").write_text(
            '[host-a]\nwebhook_secret_file = "a.secret"\ntoken_file = "a.token"\n'
            f'api_url = "{source.api_a}"\n'
        )
        made.start()
        yield made


def opened(source: SourceHost, head: str) -> dict[str, Any]:
    url = f"{source.url}/harbor/pier"
    body = pull_request("opened", head={"label": f"harbor:{BRANCH}", "ref": BRANCH, "sha": head})
    body["repository"] |= {"html_url": url, "clone_url": f"{url}.git", "git_url": f"{url}.git"}
    return body


def call(deck: Installation, payload: dict[str, Any], secret: str = SECRET) -> int:
    """What the host gets for its webhook."""
    body = json.dumps(payload).encode()
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": "pull_request",
        "X-GitHub-Delivery": str(uuid4()),
        "X-Hub-Signature-256": "sha256=" + hmac.new(secret.encode(), body, "sha256").hexdigest(),
    }
    with deck.client() as client:
        return client.post("/v1/host-a/webhook", content=body, headers=headers).status_code


def test_a_pull_request_gets_a_check_with_the_agents_verdict(
    deck: Installation, source: SourceHost, tmp_path: Path
) -> None:
    assert source.files is not None
    head = git(source.files / "harbor" / "pier.git", "rev-parse", "refs/pull/7/head")
    repository = deck.connect(f"{source.url}/harbor/pier.git")
    automation = deck.post(
        "/v1/automations",
        {
            "name": "review",
            "prompt": f"Look at it.\n{block(LOOK)}\n{block(REPORT)}",
            "environment_id": deck.environment_with(repository),
            "agent_provider": "builtin",
            "triggers": [{"type": "host-a", "config": {"event": "pull_request.opened"}}],
        },
        201,
    )["automation"]["id"]
    payload = opened(source, head)
    assert call(deck, payload, "what one could guess") == 401
    assert call(deck, payload) == 202

    def over() -> dict[str, Any] | None:
        runs = deck.get(f"/v1/automations/{automation}/executions")["executions"]
        assert len(runs) == 1
        return runs[0] if runs[0]["status"] not in ("pending", "creating", "running") else None

    run = until(over, "the end of the run", 60)
    assert (run["status"], run["error"]) == ("completed", None)
    assert "it turns" in json.dumps(deck.history(run["workspace_id"]))

    def concluded() -> dict[str, Any] | None:
        return source.only_run() if source.only_run().get("conclusion") else None

    check = until(concluded, "the verdict at the host")
    assert (check["repo"], check["head_sha"], check["name"]) == ("harbor/pier", head, "review")
    assert check["conclusion"] == "success"
    assert check["output"]["title"] == "Reads well"
    assert check["output"]["summary"] == "No fault in it."
