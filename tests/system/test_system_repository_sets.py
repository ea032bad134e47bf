"""A replica of an environment with a set: both repositories are in it, and both are told of."""

from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.git import git, make_repository
from tests.support.installation import Installation, block
from tests.support.waiting import until

pytestmark = pytest.mark.long

SETS = "/v1/replica/repository-sets"


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    """Three repositories, told apart by a file; two have the same name."""
    made = [make_repository(tmp_path / name) for name in ("web", "api", "other/web")]
    for one in made:
        (one / f"only-{one.name}").write_text(one.name)
        git(one, "add", ".")
        git(one, "commit", "-q", "-m", one.name)
    return made


def test_a_set_of_repositories_in_a_real_replica(deck: Installation, sources: list[Path]) -> None:
    ids = [deck.connect(str(one)) for one in sources]
    body = {"name": f"both {uuid4()}", "repositories": ids}
    group = deck.post(SETS, body, 201)["repository_set"]
    assert group["repositories"] == ids
    assert group in deck.get(SETS)["repository_sets"]
    body = {"name": f"set {uuid4()}", "repository_set_id": group["id"]}
    environment = deck.post("/v1/environments", body, 201)["environment"]["id"]

    made = deck.create(environment)
    replica = deck.replica(made)
    assert [one["id"] for one in replica["repositories"]] == ids
    names = [one["name"] for one in replica["repositories"]]

    def read() -> list[str]:
        return [one["repository"] for one in deck.replica(made)["repository_statuses"]]

    until(lambda: read() == names, "the statuses of all")
    assert names == ["web", "api", "web-2"]
    ran = deck.run(made, "ls; cat web/only-web api/only-api; git -C api log --format=%s -1")
    assert ran["output"] == "api\nweb\nweb-2\nwebapiapi\n"

    result = deck.turn(made, block("echo more >> api/README && rm web/only-web"))
    assert result["stopReason"] == "end_turn"

    def told() -> dict[str, tuple[int, int]]:
        found = deck.replica(made)["repository_statuses"]
        diffs = {one["repository"]: one["git_diff"] for one in found}
        return {name: (one["added"], one["removed"]) for name, one in diffs.items() if one}

    until(lambda: told() == {"web": (0, 1), "api": (1, 0), "web-2": (0, 0)}, "the changes of both")
    page = deck.get(f"/v1/workspaces/{made}/repo-files/search?q=only&refresh=true")
    assert [one["displayPath"] for one in page["files"]] == ["api/only-api", "web-2/only-web"]

    assert deck.ask("DELETE", f"{SETS}/{group['id']}").status_code == 409
    deck.post(f"/v1/workspaces/{made}/archive")
    deck.reach(made, "archived")
    deck.post(f"/v1/workspaces/{made}/wake", status=202)
    deck.reach(made, "active")
    assert deck.run(made, "cat api/README; ls web")["output"] == "A shop.\nOpen.\nmore\nREADME\n"
