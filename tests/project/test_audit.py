"""The audit of locked packages fails for a vulnerability, and never for the network."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = """#!/bin/sh
# `python3 -m venv DIRECTORY`
mkdir -p "$3/bin"
printf '#!/bin/sh\\nexit %s\\n' "$PIP" >"$3/bin/pip"
cat >"$3/bin/pip-audit" <<'END'
#!/bin/sh
echo "$@" >"$ASKED"
while [ "$1" != --output ]; do shift; done
[ -z "$ANSWER" ] || echo "$ANSWER" >"$2"
exit $AUDIT
END
chmod 755 "$3/bin/pip" "$3/bin/pip-audit"
"""


@pytest.mark.parametrize(
    ("pip", "answer", "audit", "code", "said"),
    [
        (1, "", 0, 0, "pip-audit cannot be installed"),
        (0, "", 1, 0, "the index answers with no advisories"),
        (0, '{"dependencies": []}', 0, 0, "no known vulnerability"),
        (0, '{"vulns": ["PYSEC-1"]}', 1, 1, "PYSEC-1"),
    ],
    ids=["no index", "no advisories", "none", "one"],
)
def test_an_audit_fails_for_a_vulnerability_alone(
    tmp_path: Path, pip: int, answer: str, audit: int, code: int, said: str
) -> None:
    (tmp_path / "python3").write_text(PYTHON)
    (tmp_path / "python3").chmod(0o755)
    asked = tmp_path / "asked"
    ended = subprocess.run(
        [str(ROOT / ".ci/audit")],
        env={
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "TMPDIR": str(tmp_path),
            "PIP": str(pip),
            "ANSWER": answer,
            "AUDIT": str(audit),
            "ASKED": str(asked),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, said in ended.stdout + ended.stderr) == (code, True), ended
    if pip == 0:
        assert "--requirement requirements.lock" in asked.read_text()
        assert "--require-hashes" in asked.read_text()
    assert {one.name for one in tmp_path.iterdir()} <= {"python3", "asked"}
