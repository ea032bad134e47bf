"""An installation to take pictures of: a shop's repository, its agents, and what was made with them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP))

from tests.support.pictures import write_png, write_svg  # noqa: E402
from tests.support.program import Program  # noqa: E402

QD = (sys.executable, "-m", "quarterdeck")
GIT = ("git", "-c", "user.name=Someone", "-c", "user.email=someone@example.invalid")
ESCAPE, CTRL_G, CTRL_P, CTRL_S = "\x1b", "\x07", "\x10", "\x13"

CART = '''"""The cart of a small shop."""


def total(prices: list[int], discount: int = 0) -> int:
    """The sum of all prices in cents, less a discount in percent."""
    return sum(prices) * (100 - discount) // 100
'''
TEST = """from cart import total

assert total([250, 250]) == 500
assert total([1000], discount=10) == 900
assert total([], discount=100) == 0
print("3 checks passed")
"""
FIRST = (
    "Check the cart, then look at what it costs:",
    "",
    "```sh",
    "python3 test_cart.py",
    "wc -l *.py",
    "```",
)
OTHERS = (
    ("bump-deps", "```sh\necho 'requests==2.32' > requirements.txt\n```"),
    ("flaky-tests", "```sh\nfor i in $(seq 1 600); do echo run $i; sleep 1; done\n```"),
    ("broken-build", "```sh\nmake all\n```"),
)
AUTOMATION = (
    *(
        "automation",
        "create",
        "triage",
        "--agent",
        "builtin",
        "--cron",
        "0 9 * * 1-5",
        "--timezone",
        "Europe/Berlin",
    ),
    *("--prompt", "Run the tests. Fix what is simple, and report the results."),
)
START_HOOK = """#!/bin/sh
python3 --version
echo "The shop's checks: $(grep -c assert test_cart.py)"
"""
PLAN = """# Prices

| what | cents |
|---|---|
| apples | 250 |
| pears | 300 |

1. Take prices from a *file*, not from the code.
2. Round to whole cents: `total()` cuts them off.
"""
AGENT = TOP / "tests" / "end_to_end" / "careful.py"
"""It asks before it changes a file."""
CONFIG = '[agents.careful]\nname = "Careful"\ncommand = ["{}"]\n\n[cockpit]\ntheme = "{}"\n'


class Studio:
    """One installation and the pictures made of it."""

    def __init__(self, directory: Path) -> None:
        self.shop = directory / "shop"
        self.home = directory / "home"
        self.environment = {**os.environ, "QUARTERDECK_HOME": str(self.home)}
        self.shop.mkdir()
        (self.shop / "cart.py").write_text(CART)
        (self.shop / "test_cart.py").write_text(TEST)
        self.agent = directory / "bin" / "careful"
        self.plan = directory / "prices.md"
        hooks = self.shop / ".quarterdeck" / "hooks"
        hooks.mkdir(parents=True)
        (hooks / "start.sh").write_text(START_HOOK)
        for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Shop"]):
            subprocess.run([*GIT, *words], cwd=self.shop, check=True)

    def install_agent(self) -> None:
        """From here on it is there, and the first choice."""
        self.agent.parent.mkdir()
        self.agent.write_text(f"#!{sys.executable}\n{AGENT.read_text()}")
        self.agent.chmod(0o755)
        self.use_theme("dark")
        self.qd("stop")  # the next one reads what agents there are
        with self.cockpit(80, 24) as program:
            program.wait_for("online", 40)

    def use_theme(self, theme: str) -> None:
        """In what colors the next cockpit is."""
        (self.home / "config.toml").write_text(CONFIG.format(self.agent, theme))

    def replicas(self) -> list[dict[str, Any]]:
        """The records of all."""
        argv = [*QD, "replica", "ls", "--json"]
        done = subprocess.run(
            argv, cwd=self.shop, env=self.environment, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)["replicas"]

    def qd(self, *arguments: str, said: str = "") -> None:
        """Runs a verb, with `said` on its standard input."""
        subprocess.run(
            [*QD, *arguments],
            cwd=self.shop,
            env=self.environment,
            input=said,
            text=True,
            check=False,
            stdout=subprocess.DEVNULL,
        )

    def cockpit(self, columns: int, lines: int) -> Program:
        """Opens the cockpit."""
        return Program(
            QD, columns=columns, lines=lines, environment=self.environment, directory=self.shop
        )


def picture(program: Program, name: str) -> None:
    """Writes what the terminal shows, once it is quiet."""
    program.settle(0.5)
    target = TOP / "screenshots" / name
    write_svg(program.screen, target.with_suffix(".svg"))
    write_png(program.screen, target.with_suffix(".png"))
    print(f"screenshots/{name}.svg and .png")
