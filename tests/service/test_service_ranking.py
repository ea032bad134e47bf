"""What a search of many files finds first."""

import time

import pytest

from quarterdeck.service.replicas.file_indexes import Prepared, prepare
from quarterdeck.service.replicas.file_search import CANDIDATES, rank
from tests.service.big_tree import big_tree


def made(paths: list[str]) -> Prepared:
    return prepare([("deck", paths, "u" * len(paths))])


@pytest.fixture(scope="module")
def tree() -> Prepared:
    return made(big_tree(20_000))


def first(index: Prepared, query: str, count: int = 1) -> list[str]:
    return [index.entries[position].path for position, _ in rank(index, query).page(0, count)]


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("README.md", "README.md"),
        ("readme", "README.md"),
        ("docs/readme", "docs/README.md"),
        ("makefile", "Makefile"),
        ("mkfile", "Makefile"),
        ("cargo", "Cargo.toml"),
        ("package.json", "package.json"),
        ("xylophone/package", "packages/deep/nested/place/xylophone/package.json"),
        ("xylophone index", "packages/deep/nested/place/xylophone/index.ts"),
        ("widgets/index.ts", "src/quarterdeck/tui/widgets/index.ts"),
        ("dispatcher", "src/quarterdeck/service/dispatcher.py"),
        ("dispatcher.py", "src/quarterdeck/service/dispatcher.py"),
        ("dispatchertest", "src/quarterdeck/service/dispatcher_test.py"),
        ("dispatcher test", "src/quarterdeck/service/dispatcher_test.py"),
        ("zebra", "src/quarterdeck/service/routes/zebra_crossing.py"),
        ("crossing", "src/quarterdeck/service/routes/zebra_crossing.py"),
        ("zcross", "src/quarterdeck/service/routes/zebra_crossing.py"),
        ("ZoomSlider", "src/quarterdeck/tui/widgets/ZoomSlider.tsx"),
        ("zoomslider.tsx", "src/quarterdeck/tui/widgets/ZoomSlider.tsx"),
        ("zoom css", "src/quarterdeck/tui/widgets/zoom_slider.css"),
        ("variables", "infrastructure/terraform/variables.tf"),
        ("terraform/main", "infrastructure/terraform/main.tf"),
        ("main.tf", "infrastructure/terraform/main.tf"),
        ("publish.yml", ".github/workflows/publish.yml"),
        ("wfpublish", ".github/workflows/publish.yml"),
        ("HTTPProxy", "lib/HTTPProxyFactory.java"),
        ("http_proxy", "lib/http_proxy_factory_test.java"),
        ("bumpversion", "scripts/bump-version.sh"),
        ("0042", "migrations/0042_rename_columns.sql"),
        ("inconsolata bold", "assets/fonts/Inconsolata-Bold.woff2"),
        ("straße", "über/straße.txt"),
        ("日本", "i18n/日本語.json"),
        ("weird name with", "weird name with spaces.txt"),
    ],
)
def test_the_file_that_is_meant_comes_first(tree: Prepared, query: str, path: str) -> None:
    assert first(tree, query) == [path]


def test_the_kinds_of_match_in_their_order() -> None:
    paths = [
        "panel",
        "a/panel",
        "b/panel.py",
        "c/panel_view.py",
        "c/myPanel.py",
        "c/my_panel.py",
        "c/mypanels.py",
        "panel/other.py",
        "unpanelled/other.py",
        "p/a/n/e/l.py",
        "zzz.py",
    ]
    found = first(made(paths), "panel", 20)
    assert found[:4] == paths[:4]
    assert set(found[4:6]) == set(paths[4:6])
    assert found[6:] == paths[6:10]


def test_of_equal_matches_the_shorter_comes_first() -> None:
    paths = ["a/b/c/main.py", "main.py.bak", "x/main.py", "a/b/main.py"]
    assert first(made(paths), "main.py", 9) == [
        "x/main.py",
        "a/b/main.py",
        "a/b/c/main.py",
        "main.py.bak",
    ]


@pytest.mark.parametrize("query", ["e", "main", "src", "a b", "queue message", "zzzz", "/", ".py"])
def test_pages_hold_every_match_once_and_in_order(tree: Prepared, query: str) -> None:
    results = rank(tree, query)
    found = [one for at in range(0, len(results) + 1, 997) for one in results.page(at, 997)]
    assert len(found) == len(results) == len({position for position, _ in found})
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    words = query.split()
    wanted = {
        position
        for position, entry in enumerate(tree.entries)
        if all(_holds(entry.path.lower(), word) for word in words)
    }
    assert {position for position, _ in found} == wanted
    if query == "e":
        assert len(results) > CANDIDATES * 3


def _holds(path: str, word: str) -> bool:
    letters = iter(path)
    return all(letter in letters for letter in word)


def test_long_and_odd_queries_do_no_harm(tree: Prepared) -> None:
    for query in (
        "x" * 1000,
        "é" * 500,
        "\0",
        "^src",
        "!main",
        "'a$",
        "\\",
        "a\\ b",
        "🦀",
        "\u200b",
    ):
        rank(tree, query).page(0, 10)


def test_a_prefix_is_of_the_path(tree: Prepared) -> None:
    below = tree.below("infrastructure/")
    assert first(below, "", 9) == [
        "infrastructure/terraform/main.tf",
        "infrastructure/terraform/variables.tf",
    ]


def test_a_first_page_of_eighty_thousand_is_quick() -> None:
    index = made(big_tree(80_000))
    for query in ("", "main", "e", "src app", "canvaspreview.py"):
        costs: list[float] = []
        for _ in range(5):
            begun = time.thread_time()
            rank(index, query).page(0, 100)
            costs.append(time.thread_time() - begun)
        assert min(costs) < 0.050, query
