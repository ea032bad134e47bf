"""A replica's record from its row, for lists, responses and webhooks."""

import json
import re
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection

from quarterdeck.service.replicas.rows import WorkspaceRow, find_workspace
from quarterdeck.wire.git_state import EventRepository
from quarterdeck.wire.replicas import PullRequest

MOST_PULL_REQUESTS = 50
"""How many of the newest pull requests of a repository are kept."""

_NUMBER = re.compile(r"/(\d+)/?$")


def replica_record(row: WorkspaceRow) -> dict[str, Any]:
    """Return the fields of `Replica`."""
    repositories = json.loads(row.repositories_json)
    return {
        "id": row.id,
        "name": row.name,
        "status": row.status,
        "source": row.source,
        "created_at": row.created_at,
        "last_activity_at": row.last_activity_at,
        "environment_id": row.environment_id,
        "repositories": [{key: one[key] for key in ("id", "name", "url")} for one in repositories],
        "pull_requests": [pull for one in seen_repositories(row) for pull in pull_requests_of(one)],
    }


def seen_repositories(row: WorkspaceRow) -> list[EventRepository]:
    """Return the repositories as the engine reported them last."""
    return [EventRepository.model_validate(one) for one in json.loads(row.repository_statuses_json)]


def keep_pull_requests(
    connection: Connection, workspace_id: str, repositories: Iterable[EventRepository]
) -> None:
    """Add the pull requests of the row: engines read files, not hosts."""
    row = find_workspace(connection, workspace_id)
    known = {one.name: one.pr_urls for one in seen_repositories(row)} if row else {}
    for one in repositories:
        both = dict.fromkeys((*known.get(one.name, ()), *one.pr_urls))
        one.pr_urls = list(both)[-MOST_PULL_REQUESTS:]


def pull_requests_of(seen: EventRepository) -> list[PullRequest]:
    """Return the pull requests of a repository; the number is the end of the page's URL."""
    numbered = [(url, _NUMBER.search(url)) for url in seen.pr_urls]
    return [
        PullRequest(repository=seen.name, number=int(found[1]), url=url)
        for url, found in numbered
        if found
    ]
