"""Send checks to the source hosts, in the form that each accepts."""

import re
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from sqlalchemy import RowMapping

from quarterdeck.service.checks.calls import CheckRefusedError, HostCall, HostError, id_in, make
from quarterdeck.service.hosts.settings import HostSettings

if TYPE_CHECKING:
    import httpx


TITLE_CHARACTERS = 255
PAGE = 100


async def report_to_host_a(
    client: "httpx.AsyncClient", settings: HostSettings, row: RowMapping
) -> str:
    """Create or change the host's check run so that it matches the row; return its id.

    Raises:
        HostError: it was not accepted.
    """
    api, base = settings.api_url or "", f"/repos/{quote(row['repository'])}"
    headers = headers_of_host_a(settings)
    known = row["host_ref"]
    if known is None and row["host_asked"]:
        # An earlier call whose answer was lost may have created one.
        known = await _find(client, api, base, headers, row)
    if known is not None:
        call = HostCall("PATCH", f"{base}/check-runs/{known}", headers, _state(row))
        await make(client, api, call)
        return known
    start = {"head_sha": row["head_sha"], "started_at": row["opened_at"]}
    call = HostCall("POST", f"{base}/check-runs", headers, _state(row) | start)
    check_run_id = id_in(await make(client, api, call))
    if check_run_id is None:
        raise HostError("its answer names no check run")
    return check_run_id


async def _find(
    client: "httpx.AsyncClient", api: str, base: str, headers: dict[str, str], row: RowMapping
) -> str | None:
    query = {"check_name": row["name"], "filter": "all", "per_page": str(PAGE)}
    path = f"{base}/commits/{row['head_sha']}/check-runs"
    answer = await make(client, api, HostCall("GET", path, headers, query=query))
    listed = answer.get("check_runs")
    for check in cast("list[Any]", listed) if isinstance(listed, list) else ():
        run = cast("dict[str, Any]", check) if isinstance(check, dict) else {}
        if run.get("external_id") == row["id"]:
            return id_in(run)
    return None


def headers_of_host_a(settings: HostSettings) -> dict[str, str]:
    """Return the headers of every call to host A."""
    return {
        "Authorization": f"Bearer {settings.token}",
        "Accept": "application/vnd.github+json",
    }


def _state(row: RowMapping) -> dict[str, Any]:
    named = {"name": row["name"], "external_id": row["id"]}
    if row["conclusion"] is None:
        return named | {"status": "in_progress"}
    return named | {
        "status": "completed",
        "conclusion": row["conclusion"],
        "completed_at": row["closed_at"],
        "output": {"title": row["title"][:TITLE_CHARACTERS], "summary": row["summary"]},
    }


DESCRIPTION_CHARACTERS = 255
STATES = {None: "running", "success": "success", "failure": "failed"}
OTHER = "canceled"
"""Also for a neutral end, which this host does not have."""

_SAME_STATE = re.compile(r"Cannot transition status via :\w+ from :(\w+)")


async def report_to_host_b(
    client: "httpx.AsyncClient", settings: HostSettings, row: RowMapping
) -> str | None:
    """Set the status of the check's name; return the host's id of it, if it has one.

    Raises:
        HostError: it was not accepted.
    """
    state = STATES.get(row["conclusion"], OTHER)
    call = HostCall(
        "POST",
        f"/projects/{quote(row['repository'], safe='')}/statuses/{row['head_sha']}",
        headers_of_host_b(settings),
        _body(row, state),
    )
    try:
        return id_in(await make(client, settings.api_url or "", call)) or row["host_ref"]
    except CheckRefusedError as e:
        if _is_so_already(e, state):
            return row["host_ref"]
        raise


def headers_of_host_b(settings: HostSettings) -> dict[str, str]:
    """Return the headers of every call to host B."""
    return {"PRIVATE-TOKEN": settings.token or ""}


def _body(row: RowMapping, state: str) -> dict[str, Any]:
    body = {"state": state, "name": row["name"]}
    if row["title"]:
        body["description"] = row["title"][:DESCRIPTION_CHARACTERS]
    return body


def _is_so_already(refusal: CheckRefusedError, state: str) -> bool:
    """Return whether an earlier call, whose answer was lost, has set this state."""
    same_state = _SAME_STATE.search(str(refusal.body.get("message")))
    return refusal.status == 400 and same_state is not None and same_state[1] == state
