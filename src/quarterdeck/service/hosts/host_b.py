"""Host B's webhook payloads. Field names are those of its public API.

Whether a merge request is trusted: `source_project_id` equal to `target_project_id` says that its
branch is in the project itself, where only users with write access can push. The author's role in
the project is not included, so no merge request from a fork is trusted.
"""

from typing import Any

from pydantic import Field

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

_ACTIONS = {"open": "opened", "reopen": "opened", "merge": "merged", "close": "closed"}


class _Account(EventShape):
    username: str
    id: int | None = None


class _Project(EventShape):
    path_with_namespace: FullName
    git_http_url: str = ""
    git_ssh_url: str = ""
    web_url: str = ""


class _Commit(EventShape):
    id: str | None = None


class _MergeRequest(EventShape):
    iid: Number
    title: str | None = None
    url: str | None = None
    source_branch: str | None = None
    target_branch: str | None = None
    last_commit: _Commit | None = None
    author_id: int | None = None
    source_project_id: int | None = None
    target_project_id: int | None = None


class _Change(_MergeRequest):
    action: str | None = None
    oldrev: str | None = None


class _Note(EventShape):
    note: str
    noteable_type: str
    url: str | None = None
    action: str | None = None


class _Payload(EventShape):
    object_kind: str
    user: _Account
    project: _Project


class _OfMergeRequest(_Payload):
    object_attributes: _Change
    changes: dict[str, Any] = Field(default_factory=dict)


class _OfAnyNote(_Payload):
    object_attributes: _Note


class _OfNote(_OfAnyNote):
    merge_request: _MergeRequest


def read_host_b(kind: str, payload: object) -> HostEvent | None:
    """Return the event of a payload; None for one that starts nothing.

    Raises:
        ValidationError: the payload does not match its kind.
    """
    match kind:
        case "Merge Request Hook":
            hook = _OfMergeRequest.model_validate(payload)
            change = _change(hook)
            return None if change is None else _event(hook, change, hook.object_attributes)
        case "Note Hook" | "Confidential Note Hook":
            return _note(payload)
        case _:
            return None


def fetch_ref_of_host_b(number: int) -> str:
    """Return the ref under which host B keeps a merge request's head."""
    return f"refs/merge-requests/{number}/head"


def _change(hook: _OfMergeRequest) -> str | None:
    """Return the kind of a change to a merge request, or None.

    An update with a previous commit is a push; one that ends a draft is an opening.
    """
    if hook.object_kind != "merge_request":
        return None
    about = hook.object_attributes
    if about.action != "update":
        return _ACTIONS.get(about.action or "")
    if about.oldrev:
        return "synchronize"
    return "opened" if hook.changes.get("draft") == {"previous": True, "current": False} else None


def _note(payload: object) -> HostEvent | None:
    any_note = _OfAnyNote.model_validate(payload)
    note = any_note.object_attributes
    created = note.action in (None, "create")  # older versions report only new notes
    on_merge_request = any_note.object_kind == "note" and note.noteable_type == "MergeRequest"
    if not (created and on_merge_request and is_command(note.note)):
        return None
    hook = _OfNote.model_validate(payload)
    about = hook.merge_request
    if about.url is None and note.url is not None:
        about = about.model_copy(update={"url": note.url.partition("#")[0]})
    return _event(hook, "command", about)


def _event(hook: _Payload, change: str, about: _MergeRequest) -> HostEvent:
    project, user = hook.project, hook.user
    # Only the author's number is included; the name is known if the author is the acting user.
    own = about.author_id is not None and about.author_id == user.id
    reference = PullRequestRef(
        repository=project.path_with_namespace,
        number=about.iid,
        title=as_line(about.title),
        url=as_line(about.url),
        head_sha=as_sha(about.last_commit and about.last_commit.id),
        head_ref=as_line(about.source_branch),
        base_ref=as_line(about.target_branch),
        author=as_line(user.username) if own else None,
        fetch_ref=fetch_ref_of_host_b(about.iid),
    )
    urls = (project.git_http_url, project.git_ssh_url, project.web_url)
    name = f"merge_request.{change}"
    source, target = about.source_project_id, about.target_project_id
    return HostEvent(
        name,
        user.username,
        project.path_with_namespace,
        urls,
        reference,
        trusted=source is not None and source == target,
        author=None if about.author_id is None else f"host-b {about.author_id}",
    )
