"""What the service reads of processes in a sandbox."""

import sys

from quarterdeck.local.processes import ENVIRONMENT_BYTES, process_ids, read_environment
from quarterdeck.sandboxes.layout import places_of
from tests.sandboxes.conftest import Bench

PYTHON = sys.executable
SIZE = 32 << 20
STRETCH = f"""
import ctypes, struct, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
start = libc.mmap(None, ctypes.c_size_t({SIZE}), 1, 0x4022, -1, ctypes.c_long(0))
with open("/proc/self/stat", "rb") as file:
    fields = [0] * 3 + file.read().rpartition(b")")[2].split()
code, stack, data, arguments = fields[26:28], fields[28], fields[45:48], fields[48:50]
numbers = map(int, [*code, *data[:2], data[2], data[2], stack, *arguments, start, start + {SIZE}])
described = struct.pack("=11QQIi", *numbers, 0, 0, -1)
PR_SET_MM, PR_SET_MM_MAP = 35, 14
failed = libc.prctl(PR_SET_MM, PR_SET_MM_MAP, described, ctypes.c_ulong(len(described)), 0)
print("stretched" if failed == 0 else ctypes.get_errno(), flush=True)
time.sleep(600)
"""


async def test_variables_of_any_length_are_read_in_part(bench: Bench) -> None:
    """A process may say that its variables are all of its memory, and 128 TB of that need not exist."""
    workspace = await bench.started()
    (places_of(bench.home, workspace).files / "stretch.py").write_text(STRETCH)
    start = f"mkfifo up; setsid {PYTHON} stretch.py > up 2>&1 </dev/null & head -1 up"
    assert await bench.said(workspace, start) == "stretched"
    sizes = [len(b"\0".join(read_environment(pid))) for pid in process_ids()]
    assert max(sizes) <= ENVIRONMENT_BYTES
