"""A replica's record from its row, as lists, answers and webhooks show it."""

import json
import re
from typing import Any

from quarterdeck.service.records.workspaces import WorkspaceRow
from quarterdeck.wire.events import EventRepository
from quarterdeck.wire.replicas import PullRequest

_NUMBER = re.compile(r"/(\d+)/?$")


def replica_record(row: WorkspaceRow) -> dict[str, Any]:
    """The fields of `Replica`."""
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
        "pull_requests": [pull for one in seen_repositories(row) for pull in _pulls(one)],
    }


def seen_repositories(row: WorkspaceRow) -> list[EventRepository]:
    """The repositories as the engine told of them last."""
    return [EventRepository.model_validate(one) for one in json.loads(row.repository_statuses_json)]


def _pulls(seen: EventRepository) -> list[PullRequest]:
    numbered = [(url, _NUMBER.search(url)) for url in seen.pr_urls]
    return [
        PullRequest(repository=seen.name, number=int(found[1]), url=url)
        for url, found in numbered
        if found
    ]
