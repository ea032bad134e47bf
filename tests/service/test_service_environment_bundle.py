"""What environments put into a workspace together: global below, source above, own on top."""

from typing import Any
from uuid import uuid4

import pytest

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.environments.service import repositories_for
from quarterdeck.service.environments.setup import Bundle, compose_bundle
from quarterdeck.service.errors import ApiError
from tests.service.callers import Callers, Client, environment, made, repository

GLOBAL = "/v1/environments/global"


def id_of(path: str) -> str:
    return path.rsplit("/", 1)[-1]


class Layers:
    """The global environment, a source, and a personal environment that it backs."""

    def __init__(self, callers: Callers, context: ServiceContext, source: str, own: str) -> None:
        self.callers, self.context = callers, context
        self.paths = {"global": GLOBAL, "source": source, "own": own}

    @property
    def client(self) -> Client:
        return self.callers.owner

    async def put(self, layer: str, kind: str, **body: Any) -> dict[str, Any]:
        return await made(self.client, f"{self.paths[layer]}/{kind}", **body)

    async def bundle(self, path: str | None = None) -> Bundle:
        of, people = id_of(path or self.paths["own"]), self.callers.people
        vault = self.context.vault
        return await self.context.database.read(
            lambda c: compose_bundle(c, vault, people.organization, people.owner, of)
        )


@pytest.fixture
async def layers(callers: Callers, context: ServiceContext) -> Layers:
    source = await environment(
        callers.key, "source", system_prompt="From the source.", personal_preferences="Theirs."
    )
    backing = {"scope": "user", "source_environment_id": id_of(source)}
    own = await environment(callers.owner, "own", **backing)
    return Layers(callers, context, source, own)


async def test_nothing_of_nothing(callers: Callers, context: ServiceContext) -> None:
    path = await environment(callers.key)
    people = callers.people
    found = await context.database.read(
        lambda c: compose_bundle(c, context.vault, people.organization, None, id_of(path))
    )
    assert found == Bundle()


# Which layers have the key, whether each but the last lets it be overridden, and who wins.
MERGE = [
    ("global", {}, "global"),
    ("source", {}, "source"),
    ("own", {}, "own"),
    ("global source", {"global": False}, "source"),
    ("global source", {"global": True}, "source"),
    ("global own", {"global": True}, "own"),
    ("global own", {"global": False}, "global"),
    ("source own", {"source": True}, "own"),
    ("source own", {"source": False}, "source"),
    ("global source own", {"global": True, "source": True}, "own"),
    ("global source own", {"global": False, "source": True}, "own"),
    ("global source own", {"global": True, "source": False}, "source"),
    ("global source own", {"global": False, "source": False}, "source"),
]


@pytest.mark.parametrize(("has", "allows", "winner"), MERGE)
async def test_which_variable_wins(
    layers: Layers, has: str, allows: dict[str, bool], winner: str
) -> None:
    # From the top down: that way nothing is inherited yet when the own one is set.
    for layer in reversed(has.split()):
        switch = allows.get(layer, False)
        await layers.put(layer, "variables", key="A", value=layer, personal_override_allowed=switch)
    assert (await layers.bundle()).variables == {"A": winner}


async def test_without_a_source_everything_may_be_overridden(layers: Layers) -> None:
    await layers.put("global", "variables", key="A", value="global")
    for scope in ("org", "user"):
        path = await environment(layers.client, f"plain-{scope}", scope=scope)
        await made(layers.client, f"{path}/variables", key="A", value=scope)
        assert (await layers.bundle(path)).variables == {"A": scope}


async def test_parts_of_one_name_replace_each_other(layers: Layers) -> None:
    for layer in ("global", "source", "own"):
        mcp = {"transport": "stdio", "config": {"command": layer, "args": [], "env": {}}}
        for name in ("same", layer):
            await layers.put(layer, "files", path=f"~/{name}", content=layer)
            await layers.put(layer, "mcps", name=name, **mcp)
            await layers.put(layer, "skills", name=layer, slug=name, source=f"/{layer}#{name}")
    found = await layers.bundle()
    winners = {"same": "own", "global": "global", "source": "source", "own": "own"}
    assert {file.path[2:]: file.content for file in found.files} == winners
    assert {one.name: one.config["command"] for one in found.mcps} == winners
    assert {skill.slug: skill.source for skill in found.skills} == {
        slug: f"/{layer}#{slug}" for slug, layer in winners.items()
    }


async def test_hooks_add_up_in_order(layers: Layers) -> None:
    for layer in ("own", "global", "source"):
        for kind in ("warm", "start"):
            for content in ("old", f"{kind} {layer}"):
                path = f"{layers.paths[layer]}/{kind}-hooks/save"
                await layers.client.post(path, json={"content": content})
    found = await layers.bundle()
    order = ["global", "source", "own"]
    assert found.warm_hooks == [(layer, f"warm {layer}") for layer in order]
    assert found.start_hooks == [(layer, f"start {layer}") for layer in order]
    await layers.client.post(f"{layers.paths['source']}/start-hooks/save", json={"content": ""})
    assert [hook.name for hook in (await layers.bundle()).start_hooks] == ["global", "own"]


async def test_prompts_and_preferences(layers: Layers) -> None:
    found = await layers.bundle()
    assert found.system_prompt == "From the source."
    assert found.personal_preferences == "Theirs."
    await layers.client.patch(layers.paths["own"], json={"personal_preferences": "Mine."})
    assert (await layers.bundle()).personal_preferences == "Mine."
    shared = await environment(layers.client, "shared", system_prompt="Alone.")
    assert (await layers.bundle(shared)).system_prompt == "Alone."


async def test_the_global_environment_itself_is_one_layer(layers: Layers) -> None:
    await layers.put("global", "variables", key="A", value="x")
    save = f"{GLOBAL}/start-hooks/save"
    await layers.client.post(save, json={"content": "true"})
    of = (await layers.client.get(GLOBAL)).json()["environment"]["id"]
    found = await layers.bundle(of)
    assert (found.variables, len(found.start_hooks)) == ({"A": "x"}, 1)
    backing = {"scope": "user", "source_environment_id": of}
    on_top = await environment(layers.client, "on-top", **backing)
    assert len((await layers.bundle(on_top)).start_hooks) == 1


async def test_another_organizations_parts_stay_there(layers: Layers) -> None:
    await made(layers.callers.stranger, f"{GLOBAL}/variables", key="A", value="x")
    assert (await layers.bundle()).variables == {}
    strange = await environment(layers.callers.stranger, "strange")
    with pytest.raises(ApiError, match="No environment"):
        await layers.bundle(strange)
    with pytest.raises(ApiError, match="No environment"):
        await layers.bundle(str(uuid4()))


async def test_a_bundle_shows_no_secret(layers: Layers) -> None:
    config = {"command": "x", "env": {"A": "s3cret"}}
    await layers.put("own", "variables", key="A", value="s3cret")
    await layers.put("own", "files", path="~/a", content="s3cret")
    await layers.put("own", "mcps", name="m", transport="stdio", config=config)
    await layers.client.post("/v1/provider-g/user/credentials", json={"api_key": "s3cret"})
    found = await layers.bundle()
    assert found.credentials == {"provider-g": "s3cret"}
    assert "s3cret" not in repr(found)


async def test_the_repositories_of_an_environment(layers: Layers) -> None:
    ids = [await repository(layers.client, name) for name in ("c", "a", "b")]
    body = {"name": "all", "repository_ids": ids}
    group = await made(layers.client, "/v1/replica/repository-sets", **body)
    people = layers.callers.people

    async def names(path: str, user: str | None = people.owner) -> list[str] | None:
        found = await layers.context.database.read(
            lambda c: repositories_for(c, people.organization, user, id_of(path))
        )
        return None if found is None else [one["name"] for one in found]

    assert await names(layers.paths["own"]) == []
    await layers.client.patch(layers.paths["source"], json={"repository_set_id": group["id"]})
    assert await names(layers.paths["source"]) == ["c", "a", "b"]
    assert await names(layers.paths["own"]) == ["c", "a", "b"]
    assert await names(layers.paths["own"], people.member) is None
    alone = await environment(layers.client, "alone", repository_id=ids[1])
    assert await names(alone, None) == ["a"]


async def test_a_workspace_of_another_user_gets_nothing_personal(layers: Layers) -> None:
    """Forks of earlier versions kept the environment of the workspace that they were made from."""
    for layer in ("global", "source", "own"):
        await layers.put(layer, "variables", key=layer.upper(), value="x")
    people, own = layers.callers.people, id_of(layers.paths["own"])
    for user in (people.member, None):
        found = await layers.context.database.read(
            lambda c, user=user: compose_bundle(
                c, layers.context.vault, people.organization, user, own
            )
        )
        assert set(found.variables) == {"GLOBAL", "SOURCE"}
        assert found.system_prompt == "From the source."
