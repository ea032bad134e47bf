"""How many lines a repository's changes have: as told, until its lines are here."""

import pytest

from quarterdeck.store.review import repositories_of
from quarterdeck.wire.git_state import RepositoryStatus

DIFF = "diff --git a/x b/x\n@@ -1,1 +1,2 @@\n a\n+b\n"


@pytest.mark.parametrize(
    ("told", "text", "counted"),
    [
        ({"added": 5, "removed": 2}, None, (5, 2, False)),
        ({"added": 0, "removed": 0}, DIFF, (1, 0, False)),  # written since it was told
        ({"added": 5, "removed": 2}, DIFF, (1, 0, False)),  # taken back since
        ({"added": 5, "removed": 2}, "", (0, 0, False)),
        ({"added": "many", "removed": []}, None, (0, 0, False)),  # no numbers
        ({"added": 3, "removed": 0}, DIFF.removesuffix("+b\n"), (3, 0, True)),  # ends early
    ],
)
def test_the_lines_that_are_here_count(
    told: dict[str, object], text: str | None, counted: tuple[int, int, bool]
) -> None:
    if text is not None:
        told["full_diff"] = text
    [change] = repositories_of([RepositoryStatus(repository="shop", git_diff=told)])
    assert (change.added, change.removed, change.cut) == counted
