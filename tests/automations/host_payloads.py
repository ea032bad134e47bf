"""Webhook payloads in the hosts' public shapes, cut down to what tells something."""

from typing import Any

SHA = "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c"
BEFORE = "95790bf891e76fee5e1747ab589903a6a1f80f22"

HOST_A_URLS = {
    "html_url": "https://host-a.example/harbor/pier",
    "git_url": "git://host-a.example/harbor/pier.git",
    "ssh_url": "git@host-a.example:harbor/pier.git",
    "clone_url": "https://host-a.example/harbor/pier.git",
}


def host_a_repository() -> dict[str, Any]:
    return {"id": 35129377, "name": "pier", "full_name": "harbor/pier", **HOST_A_URLS}


def pull_request(action: str = "opened", number: int = 7, **changes: Any) -> dict[str, Any]:
    """An event `pull_request`; `changes` are of the pull request, `sender` is who acts."""
    sender = changes.pop("sender", "mara")
    about = {
        "url": f"https://api.host-a.example/repos/harbor/pier/pulls/{number}",
        "html_url": f"https://host-a.example/harbor/pier/pull/{number}",
        "number": number,
        "state": "open",
        "title": "Mend the crane",
        "user": {"login": "mara", "type": "User"},
        "body": None,
        "draft": False,
        "merged": False,
        "head": {"label": "harbor:crane", "ref": "crane", "sha": SHA},
        "base": {"label": "harbor:main", "ref": "main", "sha": BEFORE},
        **changes,
    }
    return {
        "action": action,
        "number": number,
        "pull_request": about,
        "repository": host_a_repository(),
        "sender": {"login": sender, "type": "User"},
    }


def issue_comment(body: str, number: int = 7, **changes: Any) -> dict[str, Any]:
    """An event `issue_comment` on a pull request."""
    at = f"https://api.host-a.example/repos/harbor/pier/pulls/{number}"
    return {
        "action": "created",
        "issue": {
            "number": number,
            "title": "Mend the crane",
            "html_url": f"https://host-a.example/harbor/pier/pull/{number}",
            "user": {"login": "mara"},
            "pull_request": {"url": at},
        },
        "comment": {"body": body, "user": {"login": "joan"}, "author_association": "MEMBER"},
        "repository": host_a_repository(),
        "sender": {"login": "joan", "type": "User"},
        **changes,
    }


def host_b_project() -> dict[str, Any]:
    return {
        "id": 15,
        "name": "Pier",
        "web_url": "https://host-b.example/harbor/yard/pier",
        "git_ssh_url": "git@host-b.example:harbor/yard/pier.git",
        "git_http_url": "https://host-b.example/harbor/yard/pier.git",
        "path_with_namespace": "harbor/yard/pier",
        "default_branch": "main",
    }


def merge_request(action: str = "open", number: int = 3, **changes: Any) -> dict[str, Any]:
    """A `Merge Request Hook`; `told` goes beside the attributes that `changes` are of."""
    told = changes.pop("told", {})
    return {
        "object_kind": "merge_request",
        "event_type": "merge_request",
        "user": {"id": 51, "name": "Mara", "username": "mara"},
        "project": host_b_project(),
        "object_attributes": {
            "id": 99,
            "iid": number,
            "author_id": 51,
            "title": "Mend the crane",
            "source_branch": "crane",
            "target_branch": "main",
            "state": "opened",
            "url": f"https://host-b.example/harbor/yard/pier/-/merge_requests/{number}",
            "last_commit": {"id": SHA, "message": "Mend it\n"},
            "action": action,
            **changes,
        },
        "changes": {},
        **told,
    }


def note(body: str, number: int = 3, **changes: Any) -> dict[str, Any]:
    """A `Note Hook` on a merge request."""
    at = f"https://host-b.example/harbor/yard/pier/-/merge_requests/{number}#note_1244"
    return {
        "object_kind": "note",
        "event_type": "note",
        "user": {"id": 52, "name": "Joan", "username": "joan"},
        "project": host_b_project(),
        "object_attributes": {
            "id": 1244,
            "note": body,
            "noteable_type": "MergeRequest",
            "url": at,
            **changes,
        },
        "merge_request": {
            "id": 99,
            "iid": number,
            "author_id": 51,
            "title": "Mend the crane",
            "source_branch": "crane",
            "target_branch": "main",
            "last_commit": {"id": SHA},
        },
    }
