"""The Makefile, by the real make, in a directory whose name has a blank."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STUB = """#!/bin/sh
echo "$(basename "$0") $*" >>'{log}'
[ "$(basename "$0")" != qd ] || pwd
case "$*" in "-m venv "*)
    mkdir -p .venv/bin && touch .venv/pyvenv.cfg
    for name in python ruff basedpyright lint-imports qd; do cp "$0" .venv/bin/$name; done
esac
case "$*" in "install --prefix "*)
    mkdir -p "$3/node_modules/codex-bin/vendor/any/bin" "$3/node_modules/opencode-linux-x64/bin"
    cp "$0" "$3/node_modules/codex-bin/vendor/any/bin/codex"
    cp "$0" "$3/node_modules/opencode-linux-x64/bin/opencode"
esac
"""
"""Every program that a recipe calls: it notes how it was called."""


class Clone:
    """What make needs of a clone, with a stub for each program."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.log = base / "log"
        self.path = base / "a place" / "the clone"
        pinned = self.path / "tests" / "real_agents"
        pinned.mkdir(parents=True)
        for name in (
            "Makefile",
            "pyproject.toml",
            "requirements.lock",
            "tests/real_agents/package.json",
        ):
            shutil.copy(ROOT / name, self.path / name)
        self.programs = base / "programs"
        self.programs.mkdir()
        for name in ("python-stub", "npm"):
            (self.programs / name).write_text(STUB.format(log=self.log))
            (self.programs / name).chmod(0o755)

    def make(self, *words: str, directory: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run make as a shell would that stands in `directory`, by default the clone's."""
        where = directory or self.path
        left_out = ("ARGS", "CI", "MAKEFLAGS", "MAKELEVEL")
        environment = {name: os.environ[name] for name in os.environ if name not in left_out}
        environment |= {"PATH": f"{self.programs}:{os.environ['PATH']}", "PWD": str(where)}
        return subprocess.run(
            ["make", "PYTHON=python-stub", *words],
            cwd=where,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def called(self) -> str:
        text = self.log.read_text()
        self.log.write_text("")
        return text


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "base")


@pytest.mark.parametrize(
    ("target", "called"),
    [
        ("run", "qd "),
        ("test", "python -m pytest\n"),
        ("test-all", "python -m pytest --long"),
        ("agents", "npm install --prefix .venv/agents"),
        ("check", "lint-imports --no-logo"),
        ("format", "ruff format ."),
        ("bench", "python -m tests.bench"),
        ("shots", "python screenshots/make.py"),
    ],
)
def test_a_target_works_below_a_directory_with_a_blank(
    clone: Clone, target: str, called: str
) -> None:
    done = clone.make(target)
    assert done.returncode == 0, done.stderr
    assert called in clone.called()
    assert (clone.path / ".venv" / "pyvenv.cfg").exists()
    again = clone.make(target)
    assert again.returncode == 0 and "pip install" not in clone.called(), again.stderr


def test_a_release_is_built_by_the_packages_of_the_lock(clone: Clone) -> None:
    """With isolation `build` would install the newest hatchling of an index, without a hash."""
    told = clone.make("--dry-run", "dist").stdout
    assert "pip install --require-hashes --requirement requirements.lock" in told
    assert "-m build --no-isolation" in told


def test_clean_removes_the_virtual_environment_alone(clone: Clone) -> None:
    (clone.base / "kept").touch()
    assert clone.make("check").returncode == 0
    done = clone.make("clean")
    assert done.returncode == 0, done.stderr
    assert (clone.base / "kept").exists() and (clone.path / "Makefile").exists()
    assert not (clone.path / ".venv").exists()
    assert clone.make("clean").returncode == 0


def test_clean_refuses_what_is_not_a_virtual_environment(clone: Clone) -> None:
    thesis = clone.path / ".venv" / "thesis"
    thesis.parent.mkdir()
    thesis.touch()
    done = clone.make("clean")
    assert done.returncode != 0 and "pyvenv.cfg" in done.stderr
    assert thesis.exists()


def test_a_makefile_named_by_path_is_refused(clone: Clone, tmp_path: Path) -> None:
    """Its relative paths would be those of another project."""
    own = tmp_path / "own"
    (own / ".venv").mkdir(parents=True)
    (own / ".venv" / "pyvenv.cfg").touch()
    done = clone.make("-f", str(clone.path / "Makefile"), "clean", directory=own)
    assert done.returncode != 0 and "make -C" in done.stderr
    assert (own / ".venv").exists()


@pytest.mark.parametrize("name", ["shop", "a shop", 'the "$shop"\'s'])
def test_the_cockpit_opens_where_the_user_stands(clone: Clone, tmp_path: Path, name: str) -> None:
    shop = tmp_path / name
    shop.mkdir()
    done = clone.make("-C", str(clone.path), "run", directory=shop)
    assert str(shop) in done.stdout.splitlines(), done.stderr
    assert str(clone.path) in clone.make("run").stdout.splitlines()


def test_installing_for_the_cockpit_shows_progress(clone: Clone) -> None:
    clone.make("run")
    installs = [line for line in clone.called().splitlines() if "pip install" in line]
    assert installs and not any("--quiet" in line or " -q" in line for line in installs)
