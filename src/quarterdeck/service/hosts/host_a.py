"""Host A's webhook payloads. Field names are those of its public API.

Whether a pull request is trusted: `author_association` of the pull request (in events of comments, of
the issue that stands for it) names its author's role in the repository, and `head.repo.full_name`
equal to `repository.full_name` says that its branch is in the repository itself, where only users
with write access can push. Either is enough. `head.repo` is null once a fork was deleted and is
left out in events of comments; such a pull request is trusted by its author's role alone.
"""

from typing import Any

from quarterdeck.service.hosts.events import (
    EventShape,
    FullName,
    HostEvent,
    Number,
    as_line,
    as_sha,
    is_command,
)
from quarterdeck.wire.automation_runs import PullRequestRef

_ACTIONS = {
    "opened": "opened",
    "reopened": "opened",
    "ready_for_review": "opened",
    "synchronize": "synchronize",
}
_MEMBERS = frozenset(("OWNER", "MEMBER", "COLLABORATOR"))
"""Roles with access to a repository: only their comments command automations. `CONTRIBUTOR` only
had a pull request merged once."""


class _Account(EventShape):
    login: str
    id: int | None = None


class _Repository(EventShape):
    full_name: FullName
    clone_url: str = ""
    ssh_url: str = ""
    git_url: str = ""
    html_url: str = ""


class _HeadRepository(EventShape):
    full_name: str | None = None


class _Branch(EventShape):
    ref: str | None = None
    sha: str | None = None
    repo: _HeadRepository | None = None


class _PullRequest(EventShape):
    number: Number
    author_association: str | None = None
    title: str | None = None
    html_url: str | None = None
    user: _Account | None = None
    head: _Branch = _Branch()
    base: _Branch = _Branch()
    merged: bool | None = None


class _Remark(EventShape):
    body: str | None = None
    author_association: str | None = None


class _Payload(EventShape):
    action: str
    repository: _Repository
    sender: _Account


class _OfPullRequest(_Payload):
    pull_request: _PullRequest
    comment: _Remark | None = None
    review: _Remark | None = None


class _Issue(_PullRequest):
    pull_request: dict[str, Any] | None = None


class _OfIssue(_Payload):
    issue: _Issue
    comment: _Remark


def read_host_a(kind: str, payload: object) -> HostEvent | None:
    """Return the event of a payload; None for one that starts nothing.

    Raises:
        ValidationError: the payload does not match its kind.
    """
    match kind:
        case "pull_request":
            hook = _OfPullRequest.model_validate(payload)
            change = _change(hook)
            return None if change is None else _event(hook, change, hook.pull_request)
        case "issue_comment":
            return _comment(_OfIssue.model_validate(payload))
        case "pull_request_review_comment" | "pull_request_review":
            return _review(_OfPullRequest.model_validate(payload))
        case _:
            return None


def fetch_ref_of_host_a(number: int) -> str:
    """Return the ref under which host A keeps a pull request's head."""
    return f"refs/pull/{number}/head"


def _change(hook: _OfPullRequest) -> str | None:
    if hook.action == "closed":
        return "merged" if hook.pull_request.merged else "closed"
    return _ACTIONS.get(hook.action)


def _comment(hook: _OfIssue) -> HostEvent | None:
    """Return a comment of a pull request: here one of an issue, which does not include the head."""
    if hook.action != "created" or hook.issue.pull_request is None or not _commands(hook.comment):
        return None
    return _event(hook, "command", hook.issue)


def _review(hook: _OfPullRequest) -> HostEvent | None:
    remark = hook.comment or hook.review
    if hook.action not in ("created", "submitted") or not _commands(remark):
        return None
    return _event(hook, "command", hook.pull_request)


def _commands(remark: _Remark | None) -> bool:
    if remark is None or (remark.author_association or "").upper() not in _MEMBERS:
        return False
    return is_command(remark.body or "")


def _event(hook: _Payload, change: str, about: _PullRequest) -> HostEvent:
    repository = hook.repository
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
    author = about.user and about.user.id
    return HostEvent(
        name,
        hook.sender.login,
        repository.full_name,
        urls,
        reference,
        _is_trusted(repository, about),
        None if author is None else f"host-a {author}",
    )


def _is_trusted(repository: _Repository, about: _PullRequest) -> bool:
    if (about.author_association or "").upper() in _MEMBERS:
        return True
    source = about.head.repo and about.head.repo.full_name
    return source is not None and source.casefold() == repository.full_name.casefold()
