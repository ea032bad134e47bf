"""A made-up tree of many files, the same each time, with files that searches must find."""

import random

WORDS = [
    "auth",
    "user",
    "login",
    "session",
    "token",
    "cache",
    "index",
    "search",
    "file",
    "view",
    "panel",
    "widget",
    "button",
    "screen",
    "route",
    "server",
    "client",
    "model",
    "wire",
    "event",
    "stream",
    "store",
    "state",
    "queue",
    "message",
    "chat",
    "canvas",
    "preview",
    "hook",
    "warm",
    "pool",
    "key",
    "secret",
    "vault",
    "git",
    "repo",
    "clone",
    "mirror",
    "test",
    "spec",
    "util",
    "helper",
    "config",
    "main",
    "app",
    "core",
    "base",
]
ENDINGS = (".py", ".ts", ".tsx", ".go", ".rs", ".md", ".json", ".css")
WANTED = (
    "README.md",
    "Cargo.toml",
    "Makefile",
    "package.json",
    "docs/README.md",
    "src/quarterdeck/service/dispatcher.py",
    "src/quarterdeck/service/dispatcher_test.py",
    "src/quarterdeck/service/routes/zebra_crossing.py",
    "src/quarterdeck/tui/widgets/ZoomSlider.tsx",
    "src/quarterdeck/tui/widgets/zoom_slider.css",
    "src/quarterdeck/tui/widgets/index.ts",
    "packages/deep/nested/place/xylophone/index.ts",
    "packages/deep/nested/place/xylophone/package.json",
    "infrastructure/terraform/variables.tf",
    "infrastructure/terraform/main.tf",
    ".github/workflows/publish.yml",
    "lib/HTTPProxyFactory.java",
    "lib/http_proxy_factory_test.java",
    "scripts/bump-version.sh",
    "migrations/0042_rename_columns.sql",
    "assets/fonts/Inconsolata-Bold.woff2",
    "über/straße.txt",
    "i18n/日本語.json",
    "weird name with spaces.txt",
)


def big_tree(count: int, seed: int = 3) -> list[str]:
    """That many paths, `WANTED` among them, sorted."""
    chance = random.Random(seed)
    found = set(WANTED)
    while len(found) < count:
        folders = [chance.choice(WORDS) for _ in range(chance.randint(1, 6))]
        words = [chance.choice(WORDS) for _ in range(chance.randint(1, 3))]
        name = chance.choice(("_", "-", "")).join(words) + chance.choice(ENDINGS)
        found.add("/".join([*folders, name]))
    return sorted(found)
