"""Where the head of a pull request stands, asked of its host: what set a run off may not say it.

A comment of host A's says nothing of it, nor does somebody who starts a run by hand.
"""

from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from quarterdeck.service.checks.calls import HostCall, HostError, make
from quarterdeck.service.checks.host_a import headers_of_host_a
from quarterdeck.service.checks.host_b import headers_of_host_b
from quarterdeck.service.hosts.events import as_line, as_sha
from quarterdeck.service.hosts.host_a import fetch_ref_of_host_a
from quarterdeck.service.hosts.host_b import fetch_ref_of_host_b
from quarterdeck.service.hosts.settings import HOST_A, HOST_B, HostSettings

if TYPE_CHECKING:
    import httpx

Head = dict[str, str | None]
"""Fields of a `PullRequestRef` that say where it stands and how git finds it."""


async def head_at(
    client: "httpx.AsyncClient", host: str, settings: HostSettings, repository: str, number: int
) -> Head:
    """The head as the host has it now.

    Raises:
        HostError: the host could not be asked, or its answer names no commit.
    """
    ask = _ask_host_a if host == HOST_A else _ask_host_b
    found = await ask(client, settings, repository, number)
    if found["head_sha"] is None:
        raise HostError("its answer names no commit")
    return found


def fetch_ref_at(host: str, number: int) -> str:
    """The ref under which a host keeps the head; it need not be asked for that."""
    return fetch_ref_of_host_a(number) if host == HOST_A else fetch_ref_of_host_b(number)


async def _ask_host_a(
    client: "httpx.AsyncClient", settings: HostSettings, repository: str, number: int
) -> Head:
    path = f"/repos/{quote(repository)}/pulls/{number}"
    call = HostCall("GET", path, headers_of_host_a(settings))
    told = await make(client, settings.api_url or "", call)
    head, base = _part(told, "head"), _part(told, "base")
    return {
        "head_sha": as_sha(_text(head, "sha")),
        "head_ref": as_line(_text(head, "ref")),
        "base_ref": as_line(_text(base, "ref")),
        "fetch_ref": fetch_ref_at(HOST_A, number),
    }


async def _ask_host_b(
    client: "httpx.AsyncClient", settings: HostSettings, repository: str, number: int
) -> Head:
    path = f"/projects/{quote(repository, safe='')}/merge_requests/{number}"
    call = HostCall("GET", path, headers_of_host_b(settings))
    told = await make(client, settings.api_url or "", call)
    return {
        "head_sha": as_sha(_text(told, "sha")),
        "head_ref": as_line(_text(told, "source_branch")),
        "base_ref": as_line(_text(told, "target_branch")),
        "fetch_ref": fetch_ref_at(HOST_B, number),
    }


def _part(told: dict[str, Any], name: str) -> dict[str, Any]:
    found = told.get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _text(told: dict[str, Any], name: str) -> str | None:
    found = told.get(name)
    return found if isinstance(found, str) else None
