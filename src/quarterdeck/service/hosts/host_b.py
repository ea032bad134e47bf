"""Host B's webhook payloads. The names in them are those of its public interface."""

from typing import Any

from pydantic import Field

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

_ACTIONS = {"open": "opened", "reopen": "opened", "merge": "merged", "close": "closed"}


class _Account(Shape):
    username: str
    id: int | None = None


class _Project(Shape):
    path_with_namespace: FullName
    git_http_url: str = ""
    git_ssh_url: str = ""
    web_url: str = ""


class _Commit(Shape):
    id: str | None = None


class _MergeRequest(Shape):
    iid: Number
    title: str | None = None
    url: str | None = None
    source_branch: str | None = None
    target_branch: str | None = None
    last_commit: _Commit | None = None
    author_id: int | None = None


class _Change(_MergeRequest):
    action: str | None = None
    oldrev: str | None = None


class _Note(Shape):
    note: str
    noteable_type: str
    url: str | None = None
    action: str | None = None


class _Told(Shape):
    object_kind: str
    user: _Account
    project: _Project


class _OfMergeRequest(_Told):
    object_attributes: _Change
    changes: dict[str, Any] = Field(default_factory=dict)


class _OfAnyNote(_Told):
    object_attributes: _Note


class _OfNote(_OfAnyNote):
    merge_request: _MergeRequest


def read_host_b(kind: str, payload: object) -> HostEvent | None:
    """The event that a payload tells of; None for one that starts nothing.

    Raises:
        ValidationError: the payload has not the shape of its kind.
    """
    match kind:
        case "Merge Request Hook":
            told = _OfMergeRequest.model_validate(payload)
            change = _change(told)
            return None if change is None else _event(told, change, told.object_attributes)
        case "Note Hook" | "Confidential Note Hook":
            return _note(payload)
        case _:
            return None


def fetch_ref_of_host_b(number: int) -> str:
    """The ref under which host B keeps a merge request's head."""
    return f"refs/merge-requests/{number}/head"


def _change(told: _OfMergeRequest) -> str | None:
    """An update is new commits when it names what was there before, or the end of a draft."""
    if told.object_kind != "merge_request":
        return None
    about = told.object_attributes
    if about.action != "update":
        return _ACTIONS.get(about.action or "")
    if about.oldrev:
        return "synchronize"
    return "opened" if told.changes.get("draft") == {"previous": True, "current": False} else None


def _note(payload: object) -> HostEvent | None:
    any_note = _OfAnyNote.model_validate(payload)
    said = any_note.object_attributes
    created = said.action in (None, "create")  # older versions tell of new notes only
    meant = any_note.object_kind == "note" and said.noteable_type == "MergeRequest"
    if not (created and meant and is_command(said.note)):
        return None
    told = _OfNote.model_validate(payload)
    about = told.merge_request
    if about.url is None and said.url is not None:
        about = about.model_copy(update={"url": said.url.partition("#")[0]})
    return _event(told, "command", about)


def _event(told: _Told, change: str, about: _MergeRequest) -> HostEvent:
    project, user = told.project, told.user
    # Of the author only the number is told; the name is known when it is who acts.
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
    return HostEvent(name, user.username, project.path_with_namespace, urls, reference)
