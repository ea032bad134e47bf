"""How large the code is, and how many modules a few paths through it load.

python -m tests.project.size
"""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
LONGEST = 600
LOADED_BY = {
    "the command line": "quarterdeck.cli.program",
    "qd replica ls": "quarterdeck.cli.replica.listing, quarterdeck.client.replicas",
    "the cockpit": "quarterdeck.tui.app",
    "the service": "quarterdeck.service.app",
    "the engine": "quarterdeck.engine.daemon",
    "the emulator's process": "quarterdeck.tui.terminal.worker",
}


def modules() -> dict[str, Path]:
    """Return the files of all modules, migrations of the database excepted."""
    return {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(SOURCE.rglob("*.py"))
        if "versions" not in path.parts
    }


def imported(name: str, known: dict[str, Path]) -> Iterator[str]:
    """Yield the modules that a module imports, also inside functions."""
    for node in ast.walk(ast.parse(known[name].read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module


def loaded(names: str) -> int:
    """Return how many modules of this program a fresh interpreter has after importing some."""
    code = f"import sys, {names}; print(sum(m.startswith('quarterdeck') for m in sys.modules))"
    return int(subprocess.check_output([sys.executable, "-c", code]))


def main() -> None:
    """Print the report."""
    known = modules()
    lines = {name: len(path.read_text("utf-8").splitlines()) for name, path in known.items()}
    importers = Counter(one for name in known for one in set(imported(name, known)))
    classes = Counter(
        node.name
        for path in known.values()
        for node in ast.parse(path.read_text("utf-8")).body  # nested ones are unique by their owner
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    total = sum(lines.values())
    print(f"{len(known)} modules, {total} lines, {total / len(known):.0f} lines each")
    print(f"{sum(count == 1 for count in importers.values())} modules with one importer")
    print(f"{sum(count > 1 for count in classes.values())} class names that are not unique")
    for name, count in lines.items():
        if count > LONGEST:
            print(f"{name}: {count} lines")
    for what, names in LOADED_BY.items():
        print(f"{loaded(names)} modules are loaded for {what}")


if __name__ == "__main__":
    main()
