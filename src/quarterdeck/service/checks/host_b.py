"""Checks as host B keeps them: a commit's statuses, one for each name."""

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sqlalchemy import RowMapping

from quarterdeck.service.checks.calls import HostCall, HostRefusal, id_in, make
from quarterdeck.service.hosts.settings import HostSettings

if TYPE_CHECKING:
    import httpx

DESCRIPTION_CHARACTERS = 255
STATES = {None: "running", "success": "success", "failure": "failed"}
OTHER = "canceled"
"""Also of a neutral end, which this host does not know."""

_SAME_STATE = re.compile(r"Cannot transition status via :\w+ from :(\w+)")


async def tell(client: "httpx.AsyncClient", settings: HostSettings, row: RowMapping) -> str | None:
    """Sets the status of the check's name; returns the host's id of it, when it gave one.

    Raises:
        HostError: it was not taken.
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
    except HostRefusal as e:
        if _is_so_already(e, state):
            return row["host_ref"]
        raise


def headers_of_host_b(settings: HostSettings) -> dict[str, str]:
    """What every call to host B carries."""
    return {"PRIVATE-TOKEN": settings.token or ""}


def _body(row: RowMapping, state: str) -> dict[str, Any]:
    body = {"state": state, "name": row["name"]}
    if row["title"]:
        body["description"] = row["title"][:DESCRIPTION_CHARACTERS]
    return body


def _is_so_already(refusal: HostRefusal, state: str) -> bool:
    """An earlier call whose answer was lost has set this very state."""
    found = _SAME_STATE.search(str(refusal.body.get("message")))
    return refusal.status == 400 and found is not None and found[1] == state
