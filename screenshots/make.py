"""Makes the pictures of the README from the running program: `make shots`.

A shop's repository, an installation of its own, real agents and terminals; each picture is written
as SVG and PNG from the cells that a terminal shows.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

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
    *("automation", "create", "triage", "--cron", "0 9 * * 1-5", "--timezone", "Europe/Berlin"),
    *("--prompt", "Run the tests. Mend what is simple, and report how they stand."),
)


class Studio:
    """One installation and the pictures made of it."""

    def __init__(self, directory: Path) -> None:
        self.shop = directory / "shop"
        self.home = directory / "home"
        self.environment = {**os.environ, "QUARTERDECK_HOME": str(self.home)}
        self.shop.mkdir()
        (self.shop / "cart.py").write_text(CART)
        (self.shop / "test_cart.py").write_text(TEST)
        for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Shop"]):
            subprocess.run([*GIT, *words], cwd=self.shop, check=True)

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


def shoot(studio: Studio) -> None:
    """The main job, picture by picture."""
    with studio.cockpit(100, 30) as program:
        program.wait_for("online", 40)
        picture(program, "start")
        program.type("n")
        program.wait_for("New replica")
        program.wait_for("First message")
        for number, line in enumerate(FIRST):
            program.type(("\r" if number else "") + line)
        program.wait_for("wc -l")
        picture(program, "create")
        program.type(CTRL_S)
        program.wait_for("ran without", 60)
        program.type(ESCAPE)
        program.wait_for("n new")
        picture(program, "chat")
        program.type("t")
        program.wait_for("shop$", 30)
        program.type("vim -N -u NONE +'syntax on' cart.py\r")
        program.wait_for("total(prices", 20)
        picture(program, "terminal")
        program.type(":q!\r")
        program.wait_for("shop$")
        program.type(CTRL_G)
        program.wait_for("l list")
        program.type("l")
        program.wait_for("n new")
        program.type("q")
        program.finish()
    for name, message in OTHERS:
        studio.qd("replica", "create", "--name", name, "-m", message)
    studio.qd("replica", "create", "--name", "old-idea", "--wait")
    studio.qd("replica", "sleep", "old-idea")
    studio.qd(*AUTOMATION)
    studio.qd("env", "variables", "set", "shop", "LOG_LEVEL", said="debug")
    with studio.cockpit(120, 40) as program:
        program.wait_for("working", 60)
        program.wait_for("sleeping", 60)
        program.wait_for("run 3", 60)
        picture(program, "list")
        program.type("?")
        program.wait_for("Tabs of a replica")
        picture(program, "help")
    with studio.cockpit(120, 40) as program:
        review(program)
        pages(program)
    with studio.cockpit(80, 24) as program:
        program.wait_for("working", 60)
        picture(program, "small")
    more(studio)


def more(studio: Studio) -> None:
    """Single commands, the palette, and how it looks in other colors and with little room."""
    with studio.cockpit(120, 40) as program:
        program.wait_for("bump-deps", 60)
        program.type("/bump\r7")
        program.wait_for("[7 Exec]", 30)
        program.type("ls -l shop && cat shop/requirements.txt\r")
        program.wait_for("requests==2.32", 30)
        picture(program, "exec")
        program.type(CTRL_P)
        program.wait_for("An action, a replica, a page", 30)
        program.type("ter")
        program.wait_for("Open the terminal", 30)
        picture(program, "palette")
    with studio.cockpit(50, 24) as program:
        program.wait_for("working", 60)
        picture(program, "narrow")
    for theme in ("light", "ansi"):
        (studio.home / "config.toml").write_text(f'[cockpit]\ntheme = "{theme}"\n')
        with studio.cockpit(100, 30) as program:
            program.wait_for("working", 60)
            program.wait_for("run 3", 60)
            picture(program, theme)


def review(program: Program) -> None:
    """The tabs of a replica that has changed something."""
    program.wait_for("bump-deps", 60)
    program.type("/bump\r3")
    program.wait_for("requirements.txt +1", 30)
    program.type("]j\rPin the patch release, too.")
    program.wait_for("release, too.")
    picture(program, "changes")
    program.type("\r4cart")
    program.wait_for("test_cart.py", 30)
    program.type("\r")
    program.wait_for("def total", 30)
    picture(program, "files")
    # One at a time: two of them in one read would be another key.
    program.type(ESCAPE)
    program.wait_gone("def total")
    program.type(ESCAPE)
    program.wait_for("n new")


def pages(program: Program) -> None:
    """The full screens."""
    for key, words, name in (
        ("e", "shop", "environments"),
        ("a", "triage", "automations"),
        (",", "Connections", "settings"),
    ):
        program.type(key)
        program.wait_for(words, 30)
        picture(program, name)
        program.type(ESCAPE)
        program.wait_for("t terminal")


def main() -> None:
    """Makes all pictures and leaves nothing running."""
    with tempfile.TemporaryDirectory(prefix="quarterdeck-") as name:
        studio = Studio(Path(name))
        try:
            shoot(studio)
        finally:
            listed = ("check-the-cart-then", *(other for other, _ in OTHERS), "old-idea")
            studio.qd("replica", "rm", "--yes", *listed)
            studio.qd("stop")


if __name__ == "__main__":
    main()
