"""A home or a configuration file that another user could have written is refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from quarterdeck.local.home import Home
from quarterdeck.service.errors import HomeUnusableError
from quarterdeck.service.start import take_home

CONFIG = """
default = "work"
[profiles.work]
url = "https://127.0.0.1:1"
key_command = ["touch", "{}"]
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "deck"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(CONFIG.format(tmp_path / "ran"))
    (home / "config.toml").chmod(0o600)
    return home


def qd(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home.parent)}
    return subprocess.run(
        [sys.executable, "-m", "quarterdeck", *arguments],
        env={**environment, "QUARTERDECK_HOME": str(home)},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("name", [".", "config.toml"])
def test_a_program_that_others_could_name_is_not_run(home: Path, name: str) -> None:
    mode = (home / name).stat().st_mode
    (home / name).chmod(mode | 0o002)
    done = qd(home, "status")
    assert done.returncode == 2
    assert "can be written by every user" in done.stderr
    assert f"chmod go-w {home / name}" in done.stderr
    assert not (home.parent / "ran").exists()
    (home / name).chmod(mode)
    qd(home, "status")
    assert (home.parent / "ran").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("name", [".", "config.toml"])
def test_files_of_another_user_are_not_used(home: Path, name: str) -> None:
    os.chown(home / name, 43210, 0)
    done = qd(home, "status")
    assert done.returncode == 2
    assert "belongs to user 43210" in done.stderr
    assert not (home.parent / "ran").exists()


@pytest.mark.parametrize("name", [".", "service"])
def test_the_service_does_not_start_where_others_could_write(home: Path, name: str) -> None:
    place = home / name
    place.mkdir(exist_ok=True)
    place.chmod(0o777)
    with pytest.raises(HomeUnusableError, match="can be written by every user"):
        take_home(Home(home))
    assert place.stat().st_mode & 0o777 == 0o777
    done = qd(home, "serve")
    assert done.returncode == 2
    assert "can be written by every user" in done.stderr
    place.chmod(0o700)
    take_home(Home(home)).release()
