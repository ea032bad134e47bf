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


MEMBER, STRANGER = "MEMBER", "NONE"
FORK = "stranger/pier"


def pull_request(action: str = "opened", number: int = 7, **changes: Any) -> dict[str, Any]:
    """An event `pull_request`; `changes` are of the pull request, `sender` is who acts.

    Without `source` its branch lies in the repository; `sha` is its head.
    """
    sender, sha = changes.pop("sender", "mara"), changes.pop("sha", SHA)
    source = changes.pop("source", "harbor/pier")
    about = {
        "url": f"https://api.host-a.example/repos/harbor/pier/pulls/{number}",
        "html_url": f"https://host-a.example/harbor/pier/pull/{number}",
        "number": number,
        "state": "open",
        "title": "Mend the crane",
        "user": {"login": "mara", "id": 583231, "type": "User"},
        "author_association": MEMBER,
        "body": None,
        "draft": False,
        "merged": False,
        "head": {"label": "x:crane", "ref": "crane", "sha": sha, "repo": {"full_name": source}},
        "base": {
            "label": "harbor:main",
            "ref": "main",
            "sha": BEFORE,
            "repo": {"full_name": "harbor/pier"},
        },
        **changes,
    }
    return {
        "action": action,
        "number": number,
        "pull_request": about,
        "repository": host_a_repository(),
        "sender": {"login": sender, "type": "User"},
    }


def of_stranger(action: str = "opened", number: int = 7, **changes: Any) -> dict[str, Any]:
    """An event `pull_request` of one that a stranger opened from a fork."""
    user = {"login": "stranger", "id": 999, "type": "User"}
    about = {"user": user, "author_association": STRANGER, "source": FORK, "sender": "stranger"}
    return pull_request(action, number, **about | changes)


def issue_comment(
    body: str, number: int = 7, author: str = MEMBER, **changes: Any
) -> dict[str, Any]:
    """An event `issue_comment` on a pull request; `author` is the part that its author has."""
    at = f"https://api.host-a.example/repos/harbor/pier/pulls/{number}"
    return {
        "action": "created",
        "issue": {
            "number": number,
            "title": "Mend the crane",
            "html_url": f"https://host-a.example/harbor/pier/pull/{number}",
            "user": {"login": "mara", "id": 583231},
            "author_association": author,
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
    """A `Merge Request Hook`; `told` goes beside the attributes that `changes` are of.

    `source` is the project that its branch lies in, by default the target itself.
    """
    told, source = changes.pop("told", {}), changes.pop("source", 15)
    return {
        "object_kind": "merge_request",
        "event_type": "merge_request",
        "user": {"id": 51, "name": "Mara", "username": "mara"},
        "project": host_b_project(),
        "object_attributes": {
            "id": 99,
            "iid": number,
            "author_id": 51,
            "source_project_id": source,
            "target_project_id": 15,
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


def note(body: str, number: int = 3, source: int = 15, **changes: Any) -> dict[str, Any]:
    """A `Note Hook` on a merge request whose branch lies in the project `source`."""
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
            "source_project_id": source,
            "target_project_id": 15,
            "title": "Mend the crane",
            "source_branch": "crane",
            "target_branch": "main",
            "last_commit": {"id": SHA},
        },
    }
