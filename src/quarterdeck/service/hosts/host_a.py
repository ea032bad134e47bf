"""Host A's webhook payloads. The names in them are those of its public interface."""

from typing import Any

from quarterdeck.service.hosts.events import (
    FullName,
    HostEvent,
    Number,
    Shape,
    as_line,
    as_sha,
    is_command,
)
from quarterdeck.wire.automations import PullRequestRef

_ACTIONS = {
    "opened": "opened",
    "reopened": "opened",
    "ready_for_review": "opened",
    "synchronize": "synchronize",
}
_STRANGERS = frozenset(("NONE", "FIRST_TIMER", "FIRST_TIME_CONTRIBUTOR", "MANNEQUIN"))
"""Who has never had a part in a repository commands no automation of it."""


class _Account(Shape):
    login: str


class _Repository(Shape):
    full_name: FullName
    clone_url: str = ""
    ssh_url: str = ""
    git_url: str = ""
    html_url: str = ""


class _Branch(Shape):
    ref: str | None = None
    sha: str | None = None


class _PullRequest(Shape):
    number: Number
    title: str | None = None
    html_url: str | None = None
    user: _Account | None = None
    head: _Branch = _Branch()
    base: _Branch = _Branch()
    merged: bool | None = None


class _Remark(Shape):
    body: str | None = None
    author_association: str | None = None


class _Told(Shape):
    action: str
    repository: _Repository
    sender: _Account


class _OfPullRequest(_Told):
    pull_request: _PullRequest
    comment: _Remark | None = None
    review: _Remark | None = None


class _Issue(_PullRequest):
    pull_request: dict[str, Any] | None = None


class _OfIssue(_Told):
    issue: _Issue
    comment: _Remark


def read_host_a(kind: str, payload: object) -> HostEvent | None:
    """The event that a payload tells of; None for one that starts nothing.

    Raises:
        ValidationError: the payload has not the shape of its kind.
    """
    match kind:
        case "pull_request":
            told = _OfPullRequest.model_validate(payload)
            change = _change(told)
            return None if change is None else _event(told, change, told.pull_request)
        case "issue_comment":
            return _comment(_OfIssue.model_validate(payload))
        case "pull_request_review_comment" | "pull_request_review":
            return _review(_OfPullRequest.model_validate(payload))
        case _:
            return None


def fetch_ref_of_host_a(number: int) -> str:
    """The ref under which host A keeps a pull request's head."""
    return f"refs/pull/{number}/head"


def _change(told: _OfPullRequest) -> str | None:
    if told.action == "closed":
        return "merged" if told.pull_request.merged else "closed"
    return _ACTIONS.get(told.action)


def _comment(told: _OfIssue) -> HostEvent | None:
    """Comments of pull requests are comments of issues here; those say nothing of the head."""
    if told.action != "created" or told.issue.pull_request is None or not _commands(told.comment):
        return None
    return _event(told, "command", told.issue)


def _review(told: _OfPullRequest) -> HostEvent | None:
    remark = told.comment or told.review
    if told.action not in ("created", "submitted") or not _commands(remark):
        return None
    return _event(told, "command", told.pull_request)


def _commands(remark: _Remark | None) -> bool:
    if remark is None or (remark.author_association or "").upper() in _STRANGERS:
        return False
    return is_command(remark.body or "")


def _event(told: _Told, change: str, about: _PullRequest) -> HostEvent:
    repository = told.repository
    urls = (repository.clone_url, repository.ssh_url, repository.git_url, repository.html_url)
    reference = PullRequestRef(
        repository=repository.full_name,
        number=about.number,
        title=as_line(about.title),
        url=as_line(about.html_url),
        head_sha=as_sha(about.head.sha),
        head_ref=as_line(about.head.ref),
        base_ref=as_line(about.base.ref),
        author=as_line(about.user and about.user.login),
        fetch_ref=fetch_ref_of_host_a(about.number),
    )
    name = f"pull_request.{change}"
    return HostEvent(name, told.sender.login, repository.full_name, urls, reference)
