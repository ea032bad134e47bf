"""Which automations an event of a host starts."""

from typing import Any

import pytest

from quarterdeck.service.hosts.settings import place_of
from tests.automations.conftest import Office
from tests.automations.host_payloads import merge_request, pull_request
from tests.automations.hosting import OPENED, URL_A, URL_B, Hosting, trigger
from tests.service.people import bearing, key_of, settle

pytestmark = pytest.mark.one_database


@pytest.fixture
def hosting(office: Office) -> Hosting:
    return Hosting(office)


async def bound(hosting: Hosting, repository_id: str) -> str:
    """An environment that puts a repository into its workspaces."""
    body = {"name": f"of {repository_id}", "scope": "org", "repository_id": repository_id}
    answer = await hosting.client.post("/v1/environments", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["environment"]["id"]


@pytest.mark.parametrize(
    "url",
    [
        "https://host-a.example/harbor/pier",
        "https://host-a.example/harbor/pier.git/",
        "https://mara:word@HOST-A.example:8443/harbor/pier.git",
        "ssh://git@host-a.example:2222/harbor/pier.git",
        "git+ssh://git@host-a.example/harbor/pier",
        "git@Host-A.Example:harbor/pier.git",
        "host-a.example:/harbor/pier",
        "https://host-a.example/Harbor/Pier",
        "git://host-a.example/harbor/pier.git",
        " https://host-a.example/harbor/%70ier ",
    ],
)
def test_addresses_that_are_one_place(url: str) -> None:
    assert place_of(url) == "host-a.example/harbor/pier"


@pytest.mark.parametrize(
    "url",
    [
        *("", "/srv/harbor/pier", "~/pier", "./host:pier", "file:///srv/pier", "C:\\pier"),
        *("https://", "https://host-a.example", "https://[::1/a", "ext::sh -c x", "pier"),
    ],
)
def test_what_is_no_place_of_a_host(url: str) -> None:
    assert place_of(url) is None or not place_of(url).startswith("host-a")  # pyright: ignore[reportOptionalMemberAccess]


@pytest.mark.parametrize("url", ["git@HOST-A.example:harbor/pier.git", URL_A + ".git", URL_A])
async def test_a_connected_repository_is_found_by_any_address(hosting: Hosting, url: str) -> None:
    await hosting.connect(url)
    made = await hosting.office.create(triggers=[OPENED])
    assert (await hosting.host_a(pull_request())).status_code == 202
    assert await hosting.begun(made) == 1


async def test_a_repository_that_is_not_connected_starts_nothing(hosting: Hosting) -> None:
    for url in (
        "https://host-a.example/harbor/pier2",
        "https://host-a.example/other/pier",
        "https://host-b.example/harbor/pier",
        "/srv/host-a.example/harbor/pier",
    ):
        await hosting.connect(url)
    made = await hosting.office.create(triggers=[OPENED])
    assert (await hosting.host_a(pull_request())).status_code == 202
    assert await hosting.begun(made) == 0


CASES: list[tuple[dict[str, Any], dict[str, Any], int]] = [
    (OPENED, pull_request(), 1),
    (OPENED, pull_request("reopened"), 1),
    (OPENED, pull_request("synchronize"), 0),
    (trigger("pull_request.closed"), pull_request("closed", merged=True), 0),
    (trigger("pull_request.merged"), pull_request("closed", merged=True), 1),
    (trigger("merge_request.opened"), pull_request(), 0),
    (trigger("pull_request.opened", excluded_actors=["joan"]), pull_request(), 1),
    (trigger("pull_request.opened", excluded_actors=["joan", "MARA"]), pull_request(), 0),
    (
        trigger("pull_request.opened", excluded_actors=["pier[bot]"]),
        pull_request(sender="Pier[bot]"),
        0,
    ),
]


@pytest.mark.parametrize(("wanted", "payload", "runs"), CASES, ids=range(len(CASES)))
async def test_events_and_actors(
    hosting: Hosting, wanted: dict[str, Any], payload: dict[str, Any], runs: int
) -> None:
    await hosting.connect()
    made = await hosting.office.create(triggers=[wanted])
    assert (await hosting.host_a(payload)).status_code == 202
    assert await hosting.begun(made) == runs


async def test_one_that_is_switched_off_is_not_started(hosting: Hosting) -> None:
    await hosting.connect()
    made = await hosting.office.create(triggers=[OPENED], enabled=False)
    await hosting.host_a(pull_request())
    assert await hosting.begun(made) == 0


async def test_repositories_that_are_named(hosting: Hosting) -> None:
    here, elsewhere = await hosting.connect(), await hosting.connect(URL_B)
    create = hosting.office.create
    named = [trigger("pull_request.opened", repository_ids=[elsewhere, here])]
    other = [trigger("pull_request.opened", repository_ids=[elsewhere])]
    none = [trigger("pull_request.opened", repository_ids=[])]
    made = [await create(name=str(n), triggers=one) for n, one in enumerate((named, other, none))]
    await hosting.host_a(pull_request())
    assert [await hosting.begun(one) for one in made] == [1, 0, 0]


async def test_an_environment_that_is_bound_says_what_is_meant(hosting: Hosting) -> None:
    here, elsewhere = await hosting.connect(), await hosting.connect(URL_B)
    create = hosting.office.create
    ours, theirs = await bound(hosting, here), await bound(hosting, elsewhere)
    named = [trigger("pull_request.opened", repository_ids=[here])]
    made = [
        await create(name="ours", triggers=[OPENED], environment_id=ours),
        await create(name="theirs", triggers=[OPENED], environment_id=theirs),
        await create(name="named", triggers=named, environment_id=theirs),
    ]
    await hosting.host_a(pull_request())
    assert [await hosting.begun(one) for one in made] == [1, 0, 1]


async def test_every_organization_that_has_connected_it(hosting: Hosting) -> None:
    context = hosting.office.world.context
    people = await settle(context)
    own = await hosting.office.create(triggers=[OPENED])
    hosting.client.headers.update(bearing(await key_of(context, people.other)))
    environment = (await hosting.client.get("/v1/environments/global")).json()["environment"]
    foreign = await hosting.office.create(triggers=[OPENED], environment_id=environment["id"])
    await hosting.connect(organization=people.other)
    await hosting.host_a(pull_request())
    assert await hosting.begun(foreign) == 1
    hosting.client.headers.update(hosting.office.world.headers)
    assert await hosting.begun(own) == 0


async def test_host_b_finds_its_own(hosting: Hosting) -> None:
    await hosting.connect("https://host-b.example/harbor/yard/pier")
    made = await hosting.office.create(
        triggers=[trigger("merge_request.opened"), trigger("merge_request.closed"), OPENED]
    )
    await hosting.host_b(merge_request())
    await hosting.host_b(merge_request("close"))
    await hosting.host_b(merge_request("merge"))
    runs = await hosting.office.runs(made["id"])
    names = {one["trigger_event"] for one in runs}
    assert names == {"merge_request.opened", "merge_request.closed"} and len(runs) == 2
