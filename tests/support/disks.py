"""A small disk of its own for a test, on which the kernel counts what programs write."""

import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(point: Path, megabytes: int, require_tool: Callable[[str], str]) -> Generator[None]:
    """Mount an empty ext4 within the block; it is not there for users but root."""
    image = point.with_name(f"{point.name}.image")
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    subprocess.run([require_tool("mkfs.ext4"), "-q", "-m", "0", str(image)], check=True)
    mount = [require_tool("mount"), "-o", "loop", str(image), str(point)]
    try:
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("only root may mount a small disk")
        point.chmod(0o755)
        try:
            yield
        finally:
            subprocess.run(["umount", "--lazy", str(point)], check=True)
    finally:
        image.unlink()
