"""Programs of ours leave no core dump: it would have their keys."""

import resource
import subprocess
import sys

import pytest

PROGRAM = """
import resource, runpy, sys
sys.argv = {arguments}
try:
    {run}
except SystemExit:
    pass
print(resource.getrlimit(resource.RLIMIT_CORE))
"""


@pytest.mark.parametrize(
    ("arguments", "run"),
    [
        (["qd", "--version"], "from quarterdeck.cli import main; main()"),
        (
            ["git-remote-qd", "origin", "none"],
            "from quarterdeck.cli.git_remote import main; main()",
        ),
        (["engine"], "runpy.run_module('quarterdeck.engine', run_name='__main__')"),
    ],
)
def test_no_core_dump_is_left(arguments: list[str], run: str) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if hard == 0:
        pytest.skip("core dumps are off already")
    code = PROGRAM.format(arguments=arguments, run=run)
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_CORE, ({hard}, {hard}))\n{code}"
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, check=True)
    assert done.stdout.decode().splitlines()[-1] == "(0, 0)", done.stderr.decode()
