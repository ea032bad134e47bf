"""What is made of the answers of source hosts, and how seldom they are asked."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.git.pull_requests import KINDS
from quarterdeck.service.hosts import api, pull_requests
from quarterdeck.service.hosts.api import HostApis
from quarterdeck.service.hosts.pull_requests import HostPullRequests
from quarterdeck.service.hosts.settings import HostSettings, HostsSettings
from quarterdeck.wire.errors import ErrorCode
from tests.git.hosts_double import HOST_A, HOST_B, SHOP, TOKEN, HostsDouble, Refusal

BOTH = pytest.mark.parametrize("host", [HOST_A, HOST_B])
BRANCH = "qd/sails"


class Asking:
    """The APIs of both hosts, at a time that stands still."""

    def __init__(self, hosts: HostsDouble) -> None:
        settings = [HostSettings(api_url=hosts.api(host), token=TOKEN) for host in (HOST_A, HOST_B)]
        self.now = datetime(2040, 1, 2, tzinfo=UTC)
        self.context = SimpleNamespace(hosts=HostsSettings(*settings), clock=lambda: self.now)
        self.apis = HostApis(cast("ServiceContext", self.context))

    def at(self, host: str) -> HostPullRequests:
        return KINDS[host](self.apis.of(host, SHOP), "shop")


@pytest.fixture
def hosts() -> Iterator[HostsDouble]:
    with HostsDouble.running() as double:
        yield double


@pytest.fixture
async def asking(hosts: HostsDouble) -> AsyncIterator[Asking]:
    made = Asking(hosts)
    yield made
    await made.apis.close()


@BOTH
async def test_those_of_a_branch_are_found_on_all_pages(
    hosts: HostsDouble, asking: Asking, host: str
) -> None:
    hosts.page = 2
    for state in ("closed", "merged", "open"):
        hosts.add(BRANCH, state=state)
    hosts.add(BRANCH, fork=True)
    hosts.add("other")
    found = await asking.at(host).of_branch(BRANCH)
    assert [(one.number, one.state) for one in found] == [
        (9, "open"),
        (8, "merged"),
        (7, "closed"),
    ]
    assert found[0].url.startswith(hosts.root(host))
    assert {(one.repository, one.base, one.head) for one in found} == {("shop", "main", BRANCH)}


@BOTH
async def test_pages_have_a_bound(hosts: HostsDouble, asking: Asking, host: str) -> None:
    hosts.page = 1
    for _ in range(api.MOST_PAGES + 3):
        hosts.add(BRANCH)
    assert len(await asking.at(host).of_branch(BRANCH)) == api.MOST_PAGES == len(hosts.asked)


@pytest.mark.parametrize(
    ("reviews", "more", "review"),
    [
        ([], {}, None),
        ([(1, "COMMENTED"), (2, "PENDING")], {}, None),
        ([], {"requested_reviewers": [{"id": 3}]}, "required"),
        ([(1, "APPROVED"), (1, "COMMENTED")], {"requested_teams": [{"id": 3}]}, "approved"),
        ([(1, "CHANGES_REQUESTED"), (2, "APPROVED")], {}, "changes_requested"),
        ([(1, "CHANGES_REQUESTED"), (1, "APPROVED")], {}, "approved"),
        ([(1, "CHANGES_REQUESTED"), (1, "DISMISSED")], {}, None),
    ],
)
async def test_reviews_of_host_a(
    hosts: HostsDouble, asking: Asking, reviews: Any, more: Any, review: str | None
) -> None:
    given = [{"user": {"id": user}, "state": state} for user, state in reviews]
    hosts.page = 1
    pull = hosts.add(BRANCH, reviews=given, more=more)
    assert (await asking.at(HOST_A).look(pull.number)).review == review


@pytest.mark.parametrize(
    ("approvals", "more", "review"),
    [
        ({}, {}, None),
        ({"approved_by": [{"user": {"id": 1}}]}, {}, "approved"),
        ({"approved_by": [{"user": {"id": 1}}], "approvals_left": 1}, {}, "required"),
        ({"approvals_left": 1}, {}, "required"),
        ({}, {"reviewers": [{"id": 1}]}, "required"),
        ({}, {"detailed_merge_status": "not_approved"}, "required"),
        (
            {"approved_by": [{"user": {"id": 1}}]},
            {"detailed_merge_status": "requested_changes"},
            "changes_requested",
        ),
    ],
)
async def test_reviews_of_host_b(
    hosts: HostsDouble, asking: Asking, approvals: Any, more: Any, review: str | None
) -> None:
    pull = hosts.add(BRANCH, approvals=approvals, more=more)
    assert (await asking.at(HOST_B).look(pull.number)).review == review


def run(name: str, status: str, conclusion: str | None = None) -> dict[str, Any]:
    page = f"https://ci.example/{name}"
    return {"name": name, "status": status, "conclusion": conclusion, "html_url": page}


def status_a(name: str, state: str) -> dict[str, Any]:
    return {"context": name, "state": state, "target_url": f"https://ci.example/{name}"}


def status_b(name: str, status: str, allow_failure: bool = False) -> dict[str, Any]:
    page = f"https://ci.example/{name}"
    return {"name": name, "status": status, "target_url": page, "allow_failure": allow_failure}


@pytest.mark.parametrize(
    ("runs", "statuses", "state", "failed"),
    [
        ([], [], None, []),
        ([run("a", "completed", "success"), run("b", "completed", "skipped")], [], "passing", []),
        ([run("a", "in_progress"), run("b", "completed", "neutral")], [], "pending", []),
        ([run("a", "queued"), run("b", "completed", "timed_out")], [], "failing", ["b"]),
        ([run("a", "completed", "success")], [status_a("s", "pending")], "pending", []),
        ([run("a", "completed", "failure")], [status_a("s", "error")], "failing", ["a", "s"]),
    ],
)
async def test_checks_of_host_a(
    hosts: HostsDouble, asking: Asking, runs: Any, statuses: Any, state: Any, failed: list[str]
) -> None:
    hosts.page = 1
    pull = hosts.add(BRANCH, runs=runs, statuses=statuses)
    checks = (await asking.at(HOST_A).look(pull.number)).checks
    assert (checks.state, [one.name for one in checks.failed]) == (state, failed)
    assert [one.url for one in checks.failed] == [f"https://ci.example/{name}" for name in failed]


@pytest.mark.parametrize(
    ("statuses", "pipeline", "state", "failed"),
    [
        ([], None, None, []),
        ([status_b("a", "success"), status_b("b", "skipped")], None, "passing", []),
        ([status_b("a", "running"), status_b("b", "success")], None, "pending", []),
        ([status_b("a", "created"), status_b("b", "failed")], None, "failing", ["b"]),
        ([status_b("a", "failed", allow_failure=True)], None, "passing", []),
        ([status_b("a", "manual")], None, None, []),
        (
            [],
            {"status": "failed", "web_url": "https://ci.example/pipeline"},
            "failing",
            ["pipeline"],
        ),
    ],
)
async def test_checks_of_host_b(
    hosts: HostsDouble, asking: Asking, statuses: Any, pipeline: Any, state: Any, failed: list[str]
) -> None:
    pull = hosts.add(BRANCH, statuses=statuses, more={"head_pipeline": pipeline})
    checks = (await asking.at(HOST_B).look(pull.number)).checks
    assert (checks.state, [one.name for one in checks.failed]) == (state, failed)
    assert [one.url for one in checks.failed] == [f"https://ci.example/{name}" for name in failed]


@pytest.mark.parametrize(
    ("host", "more", "mergeable"),
    [
        (HOST_A, {"mergeable": True}, True),
        (HOST_A, {"mergeable": False}, False),
        (HOST_A, {"mergeable": None}, None),
        (HOST_B, {"merge_status": "can_be_merged"}, True),
        (HOST_B, {"merge_status": "can_be_merged", "has_conflicts": True}, False),
        (HOST_B, {"merge_status": "cannot_be_merged"}, False),
        (HOST_B, {"merge_status": "checking"}, None),
        (HOST_B, {"merge_status": "new word"}, None),
    ],
)
async def test_whether_it_merges(
    hosts: HostsDouble, asking: Asking, host: str, more: Any, mergeable: bool | None
) -> None:
    pull = hosts.add(BRANCH, more=more)
    assert (await asking.at(host).look(pull.number)).mergeable is mergeable


@BOTH
async def test_unresolved_threads_are_counted(
    hosts: HostsDouble, asking: Asking, host: str
) -> None:
    hosts.page = 2
    pull = hosts.add(BRANCH, threads=[False, True, False, True, False])
    assert (await asking.at(host).look(pull.number)).unresolved_threads == 3
    pull.threads = [True] * 5
    assert (await asking.at(host).look(pull.number, now=True)).unresolved_threads == 0
    pull.state = "closed"
    assert (await asking.at(host).look(pull.number, now=True)).unresolved_threads is None


@BOTH
async def test_threads_are_not_requested_where_nothing_was_said(
    hosts: HostsDouble, asking: Asking, host: str
) -> None:
    silent = hosts.add(BRANCH)
    assert (await asking.at(host).look(silent.number)).unresolved_threads == 0
    unknown = hosts.add(BRANCH, more={"review_comments": None, "user_notes_count": None})
    found = await asking.at(host).look(unknown.number)
    assert found.unresolved_threads == (None if host == HOST_A else 0)
    assert not hosts.requests("POST")
    assert len(hosts.requests("GET", "/discussions")) == (0 if host == HOST_A else 1)


async def test_host_a_is_asked_for_threads_again_when_the_pull_request_changes(
    hosts: HostsDouble, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "FRESH_SECONDS", 0.0)
    pull = hosts.add(BRANCH, threads=[False])
    for _ in range(3):
        assert (await asking.at(HOST_A).look(pull.number)).unresolved_threads == 1
    assert len(hosts.requests("POST", "/graphql")) == 1
    pull.threads.append(False)
    assert (await asking.at(HOST_A).look(pull.number)).unresolved_threads == 2
    assert len(hosts.requests("POST", "/graphql")) == 2
    asking.apis.expire(HOST_A, SHOP)
    await asking.at(HOST_A).look(pull.number)
    assert len(hosts.requests("POST", "/graphql")) == 3


@BOTH
@pytest.mark.parametrize(
    "answer",
    [
        (403, {"message": "Resource not accessible"}),
        (404, {"message": "Not Found"}),
        (405, None),
        (500, None),
        (200, {"data": None, "errors": [{"type": "FORBIDDEN", "message": "no"}]}),
        (200, {"data": {"repository": {"pullRequest": None}}}),
        (200, "text"),
    ],
)
async def test_threads_that_cannot_be_read_are_unknown(
    hosts: HostsDouble, asking: Asking, host: str, answer: tuple[int, Any]
) -> None:
    pull = hosts.add(BRANCH, threads=[False], runs=[run("a", "completed", "success")])
    end = "/graphql" if host == HOST_A else "/discussions"
    hosts.refusals.append(Refusal(*answer, end=end))
    found = [await asking.at(host).look(pull.number) for _ in range(3)]
    assert [one.unresolved_threads for one in found] == [None] * 3
    assert found[0].checks.state == ("passing" if host == HOST_A else None)
    assert len([one for one in hosts.asked if one.path.partition("?")[0].endswith(end)]) == 1


async def test_threads_that_do_not_come_do_not_delay_the_rest(
    hosts: HostsDouble, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull_requests, "THREADS_WAIT", 0.05)
    hosts.held.add("POST")
    pull = hosts.add(BRANCH, threads=[False])
    for _ in range(2):
        found = await asking.at(HOST_A).look(pull.number)
        assert (found.unresolved_threads, found.mergeable) == (None, True)
    hosts.gate.set()


@BOTH
async def test_what_the_token_may_not_read_is_unknown(
    hosts: HostsDouble, asking: Asking, host: str
) -> None:
    pull = hosts.add(BRANCH)
    for end in ("/reviews", "/approvals", "/check-runs", "/status", "/statuses"):
        hosts.refusals.append(Refusal(403, {"message": "Resource not accessible"}, end=end))
    found = await asking.at(host).look(pull.number)
    assert (found.review, found.checks.state) == (None, None)


@BOTH
async def test_nothing_hostile_gets_through(hosts: HostsDouble, asking: Asking, host: str) -> None:
    checks: dict[str, Any] = {
        "runs": [
            run("\x1b]0;x\x07" + "n" * 999, "completed", "failure") | {"html_url": "javascript:1"}
        ],
        "statuses": [
            status_b("\x1b]0;x\x07" + "n" * 999, "failed") | {"target_url": "javascript:1"}
        ],
    }
    if host == HOST_A:
        del checks["statuses"]
    pull = hosts.add(BRANCH, title="A\x1b[31m\x00red\u009b\r\n" + "x" * 9_999, **checks)
    found = await asking.at(host).look(pull.number)
    assert found.title.startswith("A [31m red x") and len(found.title) <= 500
    (failed,) = found.checks.failed
    assert failed.url is None and len(failed.name) == 200 and failed.name.isprintable()
    pull.more = dict.fromkeys(("html_url", "web_url"), "javascript:alert(1)")
    with pytest.raises(ApiError) as raised:
        await asking.at(host).look(pull.number, now=True)
    assert "not understood" in (raised.value.details or "")


@BOTH
@pytest.mark.parametrize("answer", [[], "text", {"number": "x"}, None, {"iid": -1}])
async def test_an_answer_of_another_shape(
    hosts: HostsDouble, asking: Asking, host: str, answer: Any
) -> None:
    hosts.refusals.append(Refusal(200, answer))
    with pytest.raises(ApiError) as raised:
        await asking.at(host).look(7)
    assert raised.value.code == ErrorCode.CONFLICT and host in raised.value.message


@BOTH
async def test_a_resource_is_read_once_in_a_while_and_then_on_a_condition(
    hosts: HostsDouble, asking: Asking, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pull = hosts.add(BRANCH)
    first = await asking.at(host).look(pull.number)
    count = len(hosts.asked)
    together = await asyncio.gather(*(asking.at(host).look(pull.number) for _ in range(50)))
    assert together == [first] * 50 and len(hosts.asked) == count
    asking.apis.expire(host, "SEA/Shop")
    together = await asyncio.gather(*(asking.at(host).look(pull.number) for _ in range(50)))
    assert together == [first] * 50
    assert [one.status for one in hosts.asked[count:]] == [304] * count
    pull.title = "Another title"
    assert (await asking.at(host).look(pull.number)).title == "A title"
    assert (await asking.at(host).look(pull.number, now=True)).title == "Another title"
    pull.title = "A third title"
    monkeypatch.setattr(api, "FRESH_SECONDS", 0.0)
    assert (await asking.at(host).look(pull.number)).title == "A third title"


@BOTH
@pytest.mark.parametrize(
    ("status", "body", "code", "sentence", "details"),
    [
        (401, {"message": "Bad credentials"}, ErrorCode.CONFLICT, "refused the token", "Bad cred"),
        (403, {"message": "Forbidden"}, ErrorCode.CONFLICT, "does not allow this", "Forbidden"),
        (404, {"message": "Not Found"}, ErrorCode.NOT_FOUND, "hides it", "Not Found"),
        (
            422,
            {"message": "Validation Failed", "errors": [{"message": "No commits between\x1b"}]},
            ErrorCode.INVALID_REQUEST,
            "did not accept",
            "Validation Failed; No commits between",
        ),
        (422, {"errors": [{"field": "base", "code": "invalid"}]}, None, "", "base is invalid"),
        (400, {"message": {"title": ["is too long"]}}, None, "refused", "title: is too long"),
        (409, {"message": ["Another open one: !5"]}, None, "refused", "Another open one: !5"),
        (
            500,
            {"message": "secret of the host"},
            None,
            "cannot be used now. Try again later.",
            "it answered 500",
        ),
        (301, None, None, "refused", "it answered 301"),
    ],
)
async def test_refusals(
    hosts: HostsDouble,
    asking: Asking,
    host: str,
    status: int,
    body: Any,
    code: ErrorCode | None,
    sentence: str,
    details: str,
) -> None:
    hosts.refusals.append(Refusal(status, body))
    with pytest.raises(ApiError) as raised:
        await asking.at(host).create(BRANCH, "main", "T", "", draft=False)
    error = raised.value
    assert code in (None, error.code) and sentence in error.message and host in error.message
    assert (error.details or "").startswith(details) and "\x1b" not in (error.details or "")
    if status in (401, 403, 404):
        assert f"QD_{host.replace('-', '_').upper()}_TOKEN" in error.message
        assert TOKEN not in error.message


@BOTH
@pytest.mark.parametrize(
    ("status", "headers", "body", "seconds"),
    [
        (429, {"Retry-After": "90"}, None, 90),
        (429, {"Retry-After": "Mon, 02 Jan 2040 00:02:00 GMT"}, None, 120),
        (429, {}, None, 60),
        (429, {"RateLimit-Remaining": "0", "RateLimit-Reset": "2209075230"}, None, 30),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "2209075230"}, None, 30),
        (403, {"Retry-After": "5"}, None, 5),
        (403, {}, {"message": "You have exceeded a secondary rate limit."}, 60),
        (429, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9" * 12}, None, 3600),
        (429, {"Retry-After": "soon"}, None, 60),
    ],
)
async def test_a_host_that_limits_requests_gets_none(
    hosts: HostsDouble,
    asking: Asking,
    host: str,
    status: int,
    headers: dict[str, str],
    body: Any,
    seconds: int,
) -> None:
    pull = hosts.add(BRANCH)
    hosts.refusals.append(Refusal(status, body, headers))
    for _ in range(3):
        with pytest.raises(ApiError) as raised:
            await asking.at(host).look(pull.number)
        assert raised.value.code == ErrorCode.RATE_LIMITED
        assert raised.value.retry_after in (seconds, seconds + 1)
        again = asking.now + timedelta(seconds=seconds)
        assert f"{again:%Y-%m-%d %H:%M:%S} UTC" in raised.value.message
    assert len(hosts.asked) == 1
    hosts.refusals.clear()
    asking.now += timedelta(seconds=seconds + 1)
    assert (await asking.at(host).look(pull.number)).number == pull.number


@BOTH
async def test_a_host_that_cannot_be_reached(asking: Asking, hosts: HostsDouble, host: str) -> None:
    asking.context.hosts = HostsSettings(
        *(HostSettings(api_url="http://127.0.0.1:1", token=TOKEN) for _ in range(2))
    )
    with pytest.raises(ApiError) as raised:
        await asking.at(host).look(7)
    assert (raised.value.code, raised.value.details) == (ErrorCode.CONFLICT, "ConnectError")


@BOTH
async def test_a_host_that_does_not_answer(
    hosts: HostsDouble, asking: Asking, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "CALL_SECONDS", 0.05)
    hosts.held.add("GET")
    looks = (asking.at(host).look(number) for number in range(50))
    told = await asyncio.gather(*looks, return_exceptions=True)
    assert {str(one) for one in told} == {f"{host} cannot be used now. Try again later."}
    assert len(hosts.asked) <= api.AT_ONCE
    hosts.held.clear()
    hosts.gate.set()
    monkeypatch.undo()
    made = await asking.at(host).create(BRANCH, "main", "T", "", draft=False)
    assert made.number in hosts.pulls


@BOTH
async def test_an_answer_without_end_is_given_up(
    hosts: HostsDouble, asking: Asking, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "ANSWER_BYTES", 1_000)
    pull = hosts.add(BRANCH, title="x" * 2_000)
    with pytest.raises(ApiError) as raised:
        await asking.at(host).look(pull.number)
    assert raised.value.details == "its answer is too long"


@BOTH
@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
async def test_ways_to_merge(hosts: HostsDouble, asking: Asking, host: str, method: Any) -> None:
    hosts.merge_method = "ff"
    pull = hosts.add(BRANCH)
    await asking.at(host).merge(pull.number, "a" * 40, method)
    (asked,) = hosts.requests("PUT", "/merge")
    if host == HOST_A:
        assert asked.body == {"merge_method": method, "sha": "a" * 40}
    else:
        assert asked.body == {"squash": method == "squash", "sha": "a" * 40}
    assert (await asking.at(host).look(pull.number)).state == "merged"


async def test_host_b_cannot_rebase_where_its_project_merges(
    hosts: HostsDouble, asking: Asking
) -> None:
    pull = hosts.add(BRANCH)
    with pytest.raises(ApiError) as raised:
        await asking.at(HOST_B).merge(pull.number, "a" * 40, "rebase")
    assert raised.value.code == ErrorCode.CONFLICT and "rebase" in raised.value.message
    assert pull.state == "open" and not hosts.requests("PUT")
