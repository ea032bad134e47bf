"""Which host keeps a check: only that of a connected repository, and only when it is set up."""

from typing import Any
from uuid import uuid4

import pytest

from quarterdeck.sandboxes.source_port import Login
from quarterdeck.service.automations.prompts import TriggerEvent
from quarterdeck.service.checks.calls import place_of
from quarterdeck.service.hosts.settings import HostSettings, HostsSettings, login_of, serves
from quarterdeck.wire.automation_runs import PullRequestRef
from quarterdeck.wire.repositories import Repository
from tests.checks.desk import SHA, pull_request

A = HostSettings(api_url="https://api.host-a.example", token="a")
B = HostSettings(api_url="https://host-b.example/api/v4", token="b")
BOTH = HostsSettings(A, B)
AT_A, AT_B = "https://host-a.example/sea/shop.git", "git@host-b.example:fleet/sea/shop.git"


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Host-A.example/sea/shop.git", "host-a"),
        ("https://someone:secret@host-a.example:8443/sea/shop/", "host-a"),
        ("ssh://git@host-a.example/sea/shop.git", "host-a"),
        ("git@host-a.example:sea/shop.git", "host-a"),
        ("https://host-a.example/sea/shop?x=/", "host-a"),
        ("/home/someone/sea/shop", "local"),
        ("file:///home/someone/sea/shop", "local"),
        ("https://host-a.example/shop", "local"),
        ("https://host-a.example/../user", "local"),
        ("https://host-a.example/sea/%2e%2e", "local"),
    ],
)
def test_addresses(url: str, host: str) -> None:
    assert place(BOTH, "manual", url, repository="shop-0")[0] == host


@pytest.mark.parametrize(
    ("api", "where", "does"),
    [
        ("https://api.host-a.example", "host-a.example", True),
        ("https://host-b.example/api/v4", "host-b.example", True),
        ("https://host-b.example/api/v4", "ssh.host-b.example", True),
        ("https://api.host-a.example", "host-a.example.evil.example", False),
        ("https://api.host-a.example", "a.example", False),
        ("", "", False),
    ],
)
def test_an_api_serves_its_own_host_alone(api: str, where: str, does: bool) -> None:
    assert serves(api, where) is does


def place(hosts: HostsSettings, type: str, *urls: str, **pr: Any) -> tuple[str, str]:
    about = PullRequestRef.model_validate(pull_request(**pr))
    connected = [
        Repository(id=uuid4(), name=f"shop-{n}", url=url, default_branch="main")
        for n, url in enumerate(urls)
    ]
    found = place_of(hosts, TriggerEvent(type, None, "", None, about), connected)
    assert (found.number, found.head_sha) == (about.number, about.head_sha)
    return found.host, found.repository


def test_a_connected_repository_leads_to_its_host() -> None:
    assert place(BOTH, "manual", AT_A, AT_B) == ("host-a", "sea/shop")
    assert place(BOTH, "manual", AT_A, AT_B, repository="Fleet/Sea/Shop") == (
        "host-b",
        "fleet/sea/shop",
    )
    assert place(BOTH, "manual", AT_A, AT_B, repository="shop-1") == ("host-b", "fleet/sea/shop")
    assert place(BOTH, "host-a", AT_A) == ("host-a", "sea/shop")


def test_everything_else_is_kept_here() -> None:
    assert place(BOTH, "manual") == ("local", "sea/shop")
    assert place(BOTH, "manual", "/home/someone/shop", repository="shop-0") == ("local", "shop-0")
    assert place(BOTH, "manual", AT_A, sha=None) == ("local", "sea/shop")
    assert place(HostsSettings(host_b=B), "manual", AT_A) == ("local", "sea/shop")
    assert (
        place(HostsSettings(host_a=HostSettings(api_url=A.api_url)), "manual", AT_A)[0] == "local"
    )
    assert place(BOTH, "host-b", AT_A) == ("local", "sea/shop")
    assert place(BOTH, "manual", AT_A, repository="sea/other", sha=SHA) == ("local", "sea/other")


@pytest.mark.parametrize(
    ("url", "login"),
    [
        ("https://host-a.example", Login("x-access-token", "a")),
        ("https://someone@Host-A.example:8443", Login("x-access-token", "a")),
        ("https://host-b.example", Login("oauth2", "b")),
        ("http://host-a.example", None),
        ("https://host-a.example.evil.example", None),
        ("https://host-a.example@evil.example", None),
        ("https://elsewhere.example", None),
    ],
)
def test_a_token_is_for_its_own_host(url: str, login: Login | None) -> None:
    assert login_of(BOTH, url) == login
    assert (
        login_of(HostsSettings(HostSettings(api_url=A.api_url), HostSettings(token="b")), url)
        is None
    )


@pytest.mark.parametrize(
    ("url", "given"),
    [
        ("http://127.0.0.1:3000/sea/shop", True),
        ("https://127.0.0.1/sea/shop", True),
        ("http://127.0.0.1:6666/sea/shop", False),
        ("http://127.0.0.1/sea/shop", False),
    ],
)
def test_a_token_in_clear_text_is_for_the_port_of_the_api(url: str, given: bool) -> None:
    """A program of a replica may listen on any other port of the machine."""
    hosts = HostsSettings(HostSettings(api_url="http://127.0.0.1:3000/api", token="a"))
    assert (login_of(hosts, url) is not None) is given


@pytest.mark.parametrize("api", ["http://127.0.0.1/api", "http://127.0.0.1:80/api"])
@pytest.mark.parametrize("url", ["http://127.0.0.1/sea/shop", "http://127.0.0.1:80/sea/shop"])
def test_the_default_port_may_be_written_out(api: str, url: str) -> None:
    hosts = HostsSettings(HostSettings(api_url=api, token="a"))
    assert login_of(hosts, url) is not None
