"""The question about a push says what is at stake, however much the push has."""

import pytest

from quarterdeck.sandboxes.port import RepositorySource
from quarterdeck.service.git.origin import push_question
from quarterdeck.service.git.own_branches import OwnBranches
from quarterdeck.wire.git import OriginUpdate

SHOP = RepositorySource("1", "shop", "/shop", "main")
COMMIT = "1" * 40


def heads(*names: str, commit: str | None = COMMIT, force: bool = False) -> list[OriginUpdate]:
    return [OriginUpdate(ref=f"refs/heads/{name}", commit=commit, force=force) for name in names]


OWN = [f"qd/fix/{number}" for number in range(40)]


@pytest.mark.parametrize(
    ("updates", "asked"),
    [
        (heads("qd/fix"), "Push qd/fix"),
        (heads(*OWN, "main"), f"Push main (the default branch), {', '.join(OWN[:4])} and 36 more"),
        (
            heads(*OWN, "release", "qd/fixed", "main"),
            "Push main (the default branch), release, qd/fixed, qd/fix/0, qd/fix/1 and 38 more",
        ),
        (
            [*heads(*OWN), *heads("old", commit=None), *heads("main", force=True)],
            "Remove old, overwrite main (the default branch),"
            f" push {', '.join(OWN[:5])} and 35 more",
        ),
        (
            heads(*OWN, *(f"b{number}" for number in range(8)), commit=None),
            f"Remove {', '.join(f'b{number}' for number in range(8))} and 40 more",
        ),
        (
            heads(*(f"b{number}" for number in range(30))),
            f"Push {', '.join(f'b{number}' for number in range(20))} and 10 more",
        ),
        ([OriginUpdate(ref="refs/tags/v1", commit=None)], "Remove refs/tags/v1"),
    ],
)
def test_what_is_lost_and_what_is_not_the_replicas_comes_first(
    updates: list[OriginUpdate], asked: str
) -> None:
    question = push_question(SHOP, updates, OwnBranches.of("qd/fix", []))
    assert question == f"{asked} at the source of shop, with your credentials?"


@pytest.mark.parametrize(
    ("branch", "own"),
    [
        ("qd/fix", True),
        ("qd/fix/2", True),
        ("qd/fix/deeper", True),
        ("qd/fix/deep", False),
        ("qd/fix/deep/2", False),
        ("qd/fix/Deep/2", False),
        ("qd/fixed", False),
        ("qd/FIX", False),
        ("qd", False),
        ("main", False),
    ],
)
def test_a_branch_below_another_replicas_is_that_ones(branch: str, own: bool) -> None:
    others = ["qd/fix/Deep", "qd/other", "qd/fix", "qd/fixed"]
    assert OwnBranches.of("qd/fix", others).has(f"refs/heads/{branch}") is own
    assert not OwnBranches.of("qd/fix", others).has(f"refs/tags/{branch}")
    assert not OwnBranches(None).has(f"refs/heads/{branch}")
