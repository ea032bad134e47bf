"""A replica of an environment with a set: both repositories are in it, and both are told of."""

from pathlib import Path
from uuid import uuid4

import pytest

from tests.system.installation import Installation, block, git, make_repository, until

SETS = "/v1/replica/repository-sets"


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    """Two repositories, told apart by a file."""
    made = [make_repository(tmp_path / name) for name in ("web", "api")]
    for one in made:
        (one / f"only-{one.name}").write_text(one.name)
        git(one, "add", ".")
        git(one, "commit", "-q", "-m", one.name)
    return made


def test_a_set_of_two_repositories_in_a_real_replica(
    deck: Installation, sources: list[Path]
) -> None:
    ids = [deck.connect(str(one)) for one in sources]
    body = {"name": f"both {uuid4()}", "repository_ids": ids}
    group = deck.post(SETS, body, 201)["repository_set"]
    assert [one["name"] for one in group["repositories"]] == ["web", "api"]
    assert group in deck.get(SETS)["repository_sets"]
    body = {"name": f"set {uuid4()}", "repository_set_id": group["id"]}
    environment = deck.post("/v1/environments", body, 201)["environment"]["id"]

    made = deck.create(environment)
    replica = deck.replica(made)
    assert [one["id"] for one in replica["repositories"]] == ids
    ran = deck.run(made, "ls; cat web/only-web api/only-api; git -C api log --format=%s -1")
    assert ran["output"] == "api\nweb\nwebapiapi\n"

    result = deck.turn(made, block("echo more >> api/README && rm web/only-web"))
    assert result["stopReason"] == "end_turn"

    def told() -> dict[str, tuple[int, int]]:
        found = deck.replica(made)["repository_statuses"]
        diffs = {one["repository"]: one["git_diff"] for one in found}
        return {name: (one["added"], one["removed"]) for name, one in diffs.items() if one}

    until(lambda: told() == {"web": (0, 1), "api": (1, 0)}, "the changes of both")
    page = deck.get(f"/v1/workspaces/{made}/repo-files/search?q=only&refresh=true")
    assert [one["displayPath"] for one in page["files"]] == ["api/only-api"]

    assert deck.ask("DELETE", f"{SETS}/{group['id']}").status_code == 409
    deck.post(f"/v1/workspaces/{made}/archive")
    deck.reach(made, "archived")
    deck.post(f"/v1/workspaces/{made}/wake", status=202)
    deck.reach(made, "active")
    assert deck.run(made, "cat api/README; ls web")["output"] == "A shop.\nOpen.\nmore\nREADME\n"
