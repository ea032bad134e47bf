"""Payloads of the hosts become events; what starts nothing becomes none."""

from typing import Any

import pytest
from pydantic import ValidationError

from quarterdeck.service.hosts.events import HostEvent
from quarterdeck.service.hosts.host_a import read_host_a
from quarterdeck.service.hosts.host_b import read_host_b
from tests.automations.host_payloads import (
    BEFORE,
    SHA,
    host_a_repository,
    issue_comment,
    merge_request,
    note,
    pull_request,
)

A, B, NOTE = "pull_request", "Merge Request Hook", "Note Hook"
READY = {"changes": {"draft": {"previous": True, "current": False}}}


@pytest.mark.parametrize(
    ("payload", "name"),
    [
        (pull_request("opened"), "opened"),
        (pull_request("reopened"), "opened"),
        (pull_request("ready_for_review"), "opened"),
        (pull_request("synchronize"), "synchronize"),
        (pull_request("closed", merged=True), "merged"),
        (pull_request("closed"), "closed"),
        (pull_request("labeled"), None),
        (pull_request("edited"), None),
    ],
    ids=range(8),
)
def test_actions_of_host_a(payload: dict[str, Any], name: str | None) -> None:
    found = read_host_a(A, payload)
    assert (found and found.name) == (name and f"pull_request.{name}")


@pytest.mark.parametrize(
    ("payload", "name"),
    [
        (merge_request("open"), "opened"),
        (merge_request("reopen"), "opened"),
        (merge_request("update", told=READY), "opened"),
        (merge_request("update", oldrev=BEFORE), "synchronize"),
        (merge_request("merge"), "merged"),
        (merge_request("close"), "closed"),
        (merge_request("update"), None),
        (merge_request("approved"), None),
        (merge_request("open", told={"object_kind": "issue"}), None),
    ],
    ids=range(9),
)
def test_actions_of_host_b(payload: dict[str, Any], name: str | None) -> None:
    found = read_host_b(B, payload)
    assert (found and found.name) == (name and f"merge_request.{name}")


def test_what_host_a_tells_of_a_pull_request() -> None:
    found = read_host_a(A, pull_request(sender="joan", title="Mend\nthe\x1b[31m crane\ud800"))
    assert found is not None
    assert (found.actor, found.repository) == ("joan", "harbor/pier")
    assert "git@host-a.example:harbor/pier.git" in found.urls
    assert found.pull_request.model_dump(exclude_none=True) == {
        "repository": "harbor/pier",
        "number": 7,
        "title": "Mend the [31m crane",
        "url": "https://host-a.example/harbor/pier/pull/7",
        "head_sha": SHA,
        "head_ref": "crane",
        "base_ref": "main",
        "author": "mara",
        "fetch_ref": "refs/pull/7/head",
    }


def test_what_host_b_tells_of_a_merge_request() -> None:
    found = read_host_b(B, merge_request())
    assert found is not None
    assert (found.actor, found.repository) == ("mara", "harbor/yard/pier")
    about = found.pull_request
    assert (about.number, about.head_sha, about.head_ref) == (3, SHA, "crane")
    assert (about.base_ref, about.author) == ("main", "mara")
    assert about.fetch_ref == "refs/merge-requests/3/head"
    other = read_host_b(B, merge_request(author_id=1))
    assert other is not None and other.pull_request.author is None


@pytest.mark.parametrize("body", ["/qd", " /qd fix it", "/QD\nplease", "\n\t/qd\n"])
def test_a_comment_that_begins_with_the_word_is_a_command(body: str) -> None:
    for found in (read_host_a("issue_comment", issue_comment(body)), read_host_b(NOTE, note(body))):
        assert found is not None and found.name.endswith(".command")
        assert (found.actor, found.pull_request.title) == ("joan", "Mend the crane")
        assert found.pull_request.url is not None and "#" not in found.pull_request.url


@pytest.mark.parametrize("body", ["", "  ", "qd", "/qdx", "see /qd", "//qd", "`/qd`"])
def test_another_comment_is_none(body: str) -> None:
    assert read_host_a("issue_comment", issue_comment(body)) is None
    assert read_host_b(NOTE, note(body)) is None


def test_comments_that_command_nothing() -> None:
    plain = issue_comment("/qd")
    plain["issue"].pop("pull_request")
    for payload in (plain, issue_comment("/qd", action="edited")):
        assert read_host_a("issue_comment", payload) is None
    for payload in (note("/qd", noteable_type="Issue"), note("/qd", action="update")):
        assert read_host_b(NOTE, payload) is None


@pytest.mark.parametrize(
    ("role", "commands"),
    [
        ("OWNER", True),
        ("MEMBER", True),
        ("COLLABORATOR", True),
        ("CONTRIBUTOR", False),
        ("FIRST_TIME_CONTRIBUTOR", False),
        ("NONE", False),
        ("A_ROLE_OF_LATER", False),
        (None, False),
    ],
)
def test_only_roles_with_access_to_the_repository_command(role: str | None, commands: bool) -> None:
    comment = issue_comment("/qd")
    comment["comment"]["author_association"] = role
    remark = {"body": "/qd again", "author_association": role}
    review = {**pull_request("submitted"), "review": remark}
    assert (read_host_a("issue_comment", comment) is not None) is commands
    assert (read_host_a("pull_request_review", review) is not None) is commands


def test_reviews_of_host_a_command_too() -> None:
    remark = {"body": "/qd again", "author_association": "OWNER"}
    written = {**pull_request("created"), "comment": remark}
    handed_in = {**pull_request("submitted"), "review": remark}
    for kind, payload in (
        ("pull_request_review_comment", written),
        ("pull_request_review", handed_in),
    ):
        found = read_host_a(kind, payload)
        assert found is not None and found.name == "pull_request.command"
        assert found.pull_request.head_sha == SHA


def test_other_events_are_none_whatever_they_hold() -> None:
    for kind in ("ping", "push", "check_run", "", "pull_request\0"):
        assert read_host_a(kind, {"zen": "Design for failure."}) is None
        assert read_host_b(kind, []) is None


WRONG: list[Any] = [
    None,
    [],
    "text",
    {},
    {**pull_request(), "pull_request": None},
    {**pull_request(), "sender": None},
    pull_request(number=0),
    pull_request(number=1 << 70),
    {**pull_request(), "repository": {**host_a_repository(), "full_name": "a\nb"}},
    {**pull_request(), "repository": {**host_a_repository(), "full_name": "x" * 501}},
]


@pytest.mark.parametrize("payload", WRONG, ids=range(len(WRONG)))
def test_wrong_shapes_are_told(payload: Any) -> None:
    with pytest.raises(ValidationError):
        read_host_a(A, payload)
    with pytest.raises(ValidationError):
        read_host_b(B, payload)


def test_what_is_not_needed_may_be_missing() -> None:
    bare = pull_request(head={"sha": "not one"}, base={}, user=None, title=None, html_url=None)
    found = read_host_a(A, bare)
    assert isinstance(found, HostEvent)
    assert found.pull_request.head_sha is None
    found = read_host_b(B, merge_request(last_commit=None, title=None, url=None))
    assert isinstance(found, HostEvent) and found.pull_request.head_sha is None


def test_the_author_is_known_by_the_hosts_id() -> None:
    of_a, of_b = read_host_a(A, pull_request()), read_host_b(B, merge_request())
    assert of_a is not None and of_a.author == "host-a 583231"
    assert of_b is not None and of_b.author == "host-b 51"
    nameless = read_host_a(A, pull_request(user={"login": "mara"}))
    assert nameless is not None and nameless.author is None
