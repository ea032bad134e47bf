"""Git as a person runs it, who is called Someone."""

import subprocess
from pathlib import Path

IDENTITY = ("-c", "user.name=Someone", "-c", "user.email=someone@example.invalid")
GIT = ("git", *IDENTITY)


def git(directory: Path, *words: str) -> str:
    """Run git; return what it printed, without the last line end."""
    done = subprocess.run([*GIT, *words], cwd=directory, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit_files(directory: Path) -> Path:
    """Make a repository of a directory, with all its files in one commit on `main`."""
    git(directory, "init", "-q", "-b", "main")
    git(directory, "add", ".")
    git(directory, "commit", "-q", "-m", "Start")
    return directory


def make_repository(directory: Path) -> Path:
    """A repository with two commits on `main`."""
    directory.mkdir(parents=True)
    git(directory, "init", "-q", "-b", "main")
    for number, text in enumerate(("A shop.\n", "A shop.\nOpen.\n")):
        (directory / "README").write_text(text)
        git(directory, "add", ".")
        git(directory, "commit", "-q", "-m", f"Commit {number}")
    return directory
