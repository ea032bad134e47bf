"""Free memory goes back to the system."""

import os
import platform
import subprocess
import sys

import pytest

from tests.support.installation import megabytes

FREE_BEFORE_A_USED_PIECE = """
from quarterdeck.service.server import trim
pieces = [bytearray(60_000) for _ in range(1000)]
used = bytearray(60_000)
del pieces
print(flush=True)
input()
trim()
print(flush=True)
input()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can give memory back")
def test_free_memory_before_a_used_piece_is_given_back() -> None:
    environment = {key: value for key, value in os.environ.items() if "MALLOC" not in key}
    with subprocess.Popen(
        [sys.executable, "-c", FREE_BEFORE_A_USED_PIECE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        before = megabytes(process.pid)
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        assert before - megabytes(process.pid) > 40
        process.communicate(b"\n")
