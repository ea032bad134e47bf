"""Ids of another organization or user in bodies, and requests at one time at a quota."""

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from quarterdeck.service import quotas
from quarterdeck.service.context import ServiceContext
from tests.service.callers import Callers, Client, environment, made, repository
from tests.service.conftest import NewWorkspace

ENVIRONMENTS, AUTOMATIONS = "/v1/environments", "/v1/automations"
SETS = "/v1/replica/repository-sets"
AUTOMATION = {"name": "nightly", "prompt": "Run the tests."}


def _id(path: str) -> str:
    return path.rsplit("/", 1)[1]


async def test_bodies_name_nothing_of_another_organization(callers: Callers) -> None:
    theirs, own = callers.stranger, callers.key
    shop, mine = await repository(theirs), await repository(own, "mine")
    group = (await made(theirs, SETS, name="all", repositories=[shop]))["id"]
    place = _id(await environment(theirs))
    here = await environment(own)
    ours = await made(own, AUTOMATIONS, **AUTOMATION, environment_id=_id(here))
    my_set = await made(own, SETS, name="all", repositories=[mine])
    refused: list[tuple[Client, str, str, dict[str, Any]]] = [
        (own, "POST", ENVIRONMENTS, {"name": "a", "repository_id": shop}),
        (own, "POST", ENVIRONMENTS, {"name": "a", "repository_set_id": group}),
        (
            callers.member,
            "POST",
            ENVIRONMENTS,
            {"name": "a", "scope": "user", "source_environment_id": place},
        ),
        (own, "PATCH", here, {"repository_id": shop}),
        (own, "PATCH", here, {"repository_set_id": group}),
        (own, "POST", SETS, {"name": "b", "repositories": [mine, shop]}),
        (own, "PATCH", f"{SETS}/{my_set['id']}", {"repositories": [shop]}),
        (own, "POST", AUTOMATIONS, {**AUTOMATION, "environment_id": place}),
        (own, "PATCH", f"{AUTOMATIONS}/{ours['id']}", {"environment_id": place}),
    ]
    for client, method, path, body in refused:
        answer = await client.request(method, path, json=body)
        assert answer.status_code in (400, 404), (method, path, body, answer.text)


async def test_bodies_name_no_personal_environment_of_another_user(callers: Callers) -> None:
    theirs = _id(await environment(callers.owner, "own", scope="user"))
    for client, body in (
        (callers.member, {"scope": "user", "environment_id": theirs}),
        (callers.key, {"scope": "org", "environment_id": theirs}),
        (callers.owner, {"scope": "org", "environment_id": theirs}),
    ):
        answer = await client.post(AUTOMATIONS, json={**AUTOMATION, **body})
        assert answer.status_code in (400, 404), answer.text
    body = {"name": "x", "scope": "user", "source_environment_id": theirs}
    assert (await callers.member.post(ENVIRONMENTS, json=body)).status_code == 400


Many = Callable[[int], tuple[str, dict[str, Any]]]


@pytest.mark.parametrize("kind", ["environments", "automations", "keys", "providers", "variables"])
async def test_requests_at_one_time_do_not_pass_a_quota(
    callers: Callers, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    place = await environment(callers.key)
    of = _id(place)
    requests: dict[str, Many] = {
        "environments": lambda n: (ENVIRONMENTS, {"name": f"e{n}", "scope": "user"}),
        "automations": lambda _: (
            AUTOMATIONS,
            {**AUTOMATION, "environment_id": of, "scope": "user"},
        ),
        "keys": lambda n: ("/v1/organization/api-keys", {"name": f"k{n}"}),
        "providers": lambda n: (f"/v1/p{n}/user/credentials", {"api_key": "secret"}),
        "variables": lambda n: (f"{place}/variables", {"key": f"K{n}", "value": "x"}),
    }
    monkeypatch.setattr(quotas, "OWNED_MOST", 3)
    client = callers.owner
    answers = await asyncio.gather(
        *(client.post(path, json=body) for path, body in map(requests[kind], range(12)))
    )
    codes = [answer.status_code for answer in answers]
    stored = sum(answer.is_success for answer in answers)
    assert set(codes) <= {200, 201, 429}
    assert stored == 3 - (kind == "keys"), codes


def forged(**values: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


async def test_forged_places_are_refused_or_bounded(
    callers: Callers, context: ServiceContext, new_workspace: NewWorkspace
) -> None:
    of, other = [await new_workspace(context.database) for _ in range(2)]
    path = f"/v1/replica/{of}/history"
    huge = 10**30
    for cursor in (
        forged(thread=of, before_event=huge),
        forged(thread=of, before_event=huge, before_turn=huge),
        forged(thread=of, before_event=0),
    ):
        answer = await callers.key.get(path, params={"beforeCursor": cursor})
        assert answer.status_code == 200, answer.text
    for cursor in (
        forged(thread=other, before_event=1),
        forged(thread=of, before_event=-1),
        forged(thread=of, before_event="1e3"),
        forged(thread=of),
        "x",
        "😀",
        "AAAA" * 125,
    ):
        answer = await callers.key.get(path, params={"beforeCursor": cursor})
        assert answer.status_code == 400, (cursor, answer.text)
    for name in ("limit", "beforeEvent", "beforeTurn"):
        assert (await callers.key.get(path, params={name: huge})).status_code == 200
    for place in ("-1", "1.0", "9" * 19, "x", "٣", "1,2"):
        headers = [(b"Last-Event-ID", place.encode())]
        for stream in (f"/v1/replica/{of}/events", "/v1/automations/events"):
            answer = await callers.key.get(stream, headers=headers)
            assert answer.status_code == 400, (place, answer.text)
