"""Makes the pictures of the README from the running program: `make shots`.

A shop's repository, an installation of its own, real agents and terminals; each picture is written
as SVG and PNG from the cells that a terminal shows.
"""

import tempfile
from pathlib import Path

from studio import AUTOMATION, CTRL_G, CTRL_P, CTRL_S, ESCAPE, FIRST, OTHERS, PLAN, Studio, picture
from tests.support.program import Program


def shoot(studio: Studio) -> None:
    """The main job, picture by picture."""
    with studio.cockpit(100, 30) as program:
        program.wait_for("online", 40)
        picture(program, "start")
        program.type("n")
        program.wait_for("New replica")
        program.wait_for("Prompt (optional)")
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
        studio.qd("replica", "create", "--name", name, "--agent", "builtin", "-m", message)
    studio.qd("replica", "create", "--name", "old-idea", "--wait")
    studio.qd("replica", "sleep", "old-idea")
    prepare(studio)
    with studio.cockpit(120, 40) as program:
        program.wait_for("working", 60)
        program.wait_for("sleeping", 60)
        program.wait_for("asking", 60)
        program.wait_for("Your answer is needed below.", 60)
        picture(program, "list")
        program.type("/fix\r")
        program.wait_for("Yes, edit it", 60)
        picture(program, "question")
        program.type(ESCAPE)  # all of the list again
        program.wait_for("old-idea")
        program.type("?")
        program.wait_for("Create a replica")
        picture(program, "help")
    with studio.cockpit(120, 40) as program:
        review(program)
        tabs(program)
        pages(program)
    with studio.cockpit(80, 24) as program:
        program.wait_for("working", 60)
        picture(program, "small")
    more(studio)


def prepare(studio: Studio) -> None:
    """What the other screens have to show."""
    studio.install_agent()
    ask = ("--agent", "careful", "-m", "Say in the README what is sold")
    studio.qd("replica", "create", "--name", "fix-readme", *ask)
    studio.plan.write_text(PLAN)
    studio.qd("replica", "canvas", "put", "bump-deps", str(studio.plan))
    studio.qd(*AUTOMATION)
    studio.qd("automation", "run", "triage")
    studio.qd("env", "variables", "set", "shop", "LOG_LEVEL", said="debug")
    studio.qd("env", "variables", "set", "shop", "SHOP_KEY", said="sk-shop-1")
    studio.qd("env", "hooks", "save", "shop", "warm", said="pip install -r requirements.txt")


def more(studio: Studio) -> None:
    """The palette, and how it looks in other colors and with little room."""
    with studio.cockpit(120, 40) as program:
        program.wait_for("working", 60)
        program.type(CTRL_P)
        program.wait_for("Search commands and replicas", 30)
        program.type("ter")
        program.wait_for("Open the terminal", 30)
        picture(program, "palette")
    with studio.cockpit(50, 24) as program:
        program.wait_for("working", 60)
        picture(program, "narrow")
    for theme in ("light", "ansi"):
        studio.use_theme(theme)
        with studio.cockpit(100, 30) as program:
            program.wait_for("working", 60)
            program.wait_for("alt+q to answer", 60)
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
    program.type("G")
    program.wait_for("Get changes: bump-deps", 30)
    program.wait_for("Fetch branch", 30)
    picture(program, "get-changes")
    program.type(ESCAPE)
    program.wait_gone("Get changes: bump-deps")


def tabs(program: Program) -> None:
    """The other tabs of the same replica."""
    program.type("/bump\r5")
    program.wait_for("prices.md", 30)
    program.type("\r")
    program.wait_for("Round to whole cents", 30)
    picture(program, "canvas")
    program.type(ESCAPE)
    program.wait_gone("Round to whole cents")
    program.type("6")
    program.wait_for("The shop's checks: 3", 30)
    picture(program, "hooks")
    program.type("7")
    program.wait_for("[7 Exec]", 30)
    program.type("ls -l && cat requirements.txt\r")
    program.wait_for("requests==2.32", 30)
    picture(program, "exec")
    program.type(ESCAPE)
    program.wait_for("n new")


def leave(program: Program) -> None:
    """Back to the list, step by step."""
    while "t terminal" not in program.text:
        program.type(ESCAPE)
        program.settle(0.3)


def pages(program: Program) -> None:
    """The full screens."""
    program.type("e")
    program.wait_for("Everywhere", 30)
    program.type("j")
    program.wait_for("2 variables", 30)
    picture(program, "environments")
    program.type("2")
    program.wait_for("SHOP_KEY", 30)
    picture(program, "variables")
    leave(program)
    program.type("a")
    program.wait_for("triage", 30)
    program.wait_for("manual", 30)
    picture(program, "automations")
    program.type("e")
    program.wait_for("Edit triage", 30)
    picture(program, "automation")
    leave(program)
    program.type(",")
    program.wait_for("Connections", 30)
    picture(program, "settings")
    leave(program)


def main() -> None:
    """Makes all pictures and leaves nothing running."""
    with tempfile.TemporaryDirectory(prefix="quarterdeck-") as name:
        studio = Studio(Path(name))
        try:
            shoot(studio)
        finally:
            names = (record["name"] for record in studio.replicas())
            studio.qd("replica", "rm", "--yes", *names)
            studio.qd("stop")


if __name__ == "__main__":
    main()
