"""Checks as host A keeps them: check runs, one for each check, found again by our own id."""

from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from sqlalchemy import RowMapping

from quarterdeck.service.checks.calls import HostCall, HostError, id_in, make
from quarterdeck.service.hosts.settings import HostSettings

if TYPE_CHECKING:
    import httpx

TITLE_CHARACTERS = 255
PAGE = 100


async def tell(client: "httpx.AsyncClient", settings: HostSettings, row: RowMapping) -> str:
    """Makes or changes the host's check run so that it says what the row says; returns its id.

    Raises:
        HostError: it was not taken.
    """
    api, base = settings.api_url or "", f"/repos/{quote(row['repository'])}"
    headers = headers_of_host_a(settings)
    known = row["host_ref"]
    if known is None and row["host_asked"]:
        # An earlier call may have made one whose answer was lost.
        known = await _find(client, api, base, headers, row)
    if known is not None:
        call = HostCall("PATCH", f"{base}/check-runs/{known}", headers, _state(row))
        await make(client, api, call)
        return known
    begun = {"head_sha": row["head_sha"], "started_at": row["opened_at"]}
    call = HostCall("POST", f"{base}/check-runs", headers, _state(row) | begun)
    made = id_in(await make(client, api, call))
    if made is None:
        raise HostError("its answer names no check run")
    return made


async def _find(
    client: "httpx.AsyncClient", api: str, base: str, headers: dict[str, str], row: RowMapping
) -> str | None:
    query = {"check_name": row["name"], "filter": "all", "per_page": str(PAGE)}
    path = f"{base}/commits/{row['head_sha']}/check-runs"
    answer = await make(client, api, HostCall("GET", path, headers, query=query))
    listed = answer.get("check_runs")
    for one in cast("list[Any]", listed) if isinstance(listed, list) else ():
        run = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
        if run.get("external_id") == row["id"]:
            return id_in(run)
    return None


def headers_of_host_a(settings: HostSettings) -> dict[str, str]:
    """What every call to host A carries."""
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
