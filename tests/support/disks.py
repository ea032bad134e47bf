"""Disks that are small, and files that cannot grow."""

import resource
import signal
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(point: Path, megabytes: int, require_tool: Callable[[str], str]) -> Generator[None]:
    """Mount an empty ext4 within the block, on which the kernel counts what programs write.

    It is not there for users but root.
    """
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


@contextmanager
def limited_files(most: int) -> Generator[None]:
    """Let no file grow beyond so many bytes, as if the disk were full then."""
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
