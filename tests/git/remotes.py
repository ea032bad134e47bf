"""Real remotes on loopback: sshd, and git's own HTTP server behind a password."""

import base64
import getpass
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.git import git
from tests.support.installation import free_port
from tests.support.waiting import until

PASSWORD = "planted-password"
SSHD = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {base}/host_key
AuthorizedKeysFile {base}/authorized_keys
PidFile none
UsePAM no
PasswordAuthentication no
StrictModes no
PermitRootLogin prohibit-password
"""
SSH = """\
Host 127.0.0.1
  UserKnownHostsFile /dev/null
  StrictHostKeyChecking no
  LogLevel ERROR
  IdentityFile {identity}
  IdentitiesOnly no
"""


def bare_copy(checkout: Path, place: Path) -> Path:
    """Make a bare clone to push to."""
    git(checkout, "clone", "-q", "--bare", str(checkout), str(place))
    return place


@dataclass(frozen=True)
class SshRemote:
    """An SSH server; `key` opens it, `pid` is its process."""

    port: int
    key: Path
    pid: int

    def url(self, repository: Path) -> str:
        """The address of a repository."""
        return f"ssh://{getpass.getuser()}@127.0.0.1:{self.port}{repository}"


@contextmanager
def ssh_remote(
    base: Path, require_tool: Callable[[str], str], port: int | None = None
) -> Iterator[SshRemote]:
    """Run sshd for the user of this process; with a port, one that ran here before."""
    require_tool("sshd")
    program = shutil.which("sshd") or "/usr/sbin/sshd"
    for name in ("host_key", "key") if port is None else ():
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(base / name)]
        subprocess.run(command, check=True)
    shutil.copy(base / "key.pub", base / "authorized_keys")
    port = port or free_port()
    configuration = base / "sshd_config"
    configuration.write_text(SSHD.format(port=port, base=base))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    command = [program, "-D", "-e", "-f", str(configuration)]
    with (base / "sshd.log").open("w") as log:
        process = subprocess.Popen(command, stderr=log)
    try:
        until(lambda: "listening" in (base / "sshd.log").read_text(), "sshd")
        yield SshRemote(port, base / "key", process.pid)
    finally:
        process.terminate()
        process.wait()


def ssh_configuration(path: Path, identity: Path | str) -> str:
    """Write a configuration of ssh; return the command that uses it."""
    path.write_text(SSH.format(identity=identity))
    return f"ssh -F {path}"


class _Handler(BaseHTTPRequestHandler):
    """git-http-backend as a CGI program, for one user with a password."""

    root: Path
    secured: bool
    login: str
    given: list[str]
    settings: dict[str, str]

    def do_GET(self) -> None:
        """Answer a request without a body."""
        self._serve(b"")

    def do_POST(self) -> None:
        """Answer a request with a body."""
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._serve(body)

    def _serve(self, body: bytes) -> None:
        given = self.headers.get("Authorization", "")
        if self.secured and given != "Basic " + base64.b64encode(self.login.encode()).decode():
            self.given += [given] if given else []
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        environment = {
            **os.environ,
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "REMOTE_USER": "person",
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "CONTENT_LENGTH": str(len(body)),
            "GIT_CONFIG_COUNT": str(len(self.settings)),
        }
        for number, (name, value) in enumerate(self.settings.items()):
            environment |= {
                f"GIT_CONFIG_KEY_{number}": name,
                f"GIT_CONFIG_VALUE_{number}": value,
            }
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            env=environment,
            capture_output=True,
            start_new_session=True,  # a test may kill it with all that it started
        )
        if done.returncode < 0:
            self.close_connection = True
            return
        head, _, answer = done.stdout.partition(b"\r\n\r\n")
        lines = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        status = next((value for name, value in lines if name == "Status"), "200 OK")
        self.send_response(int(status.split()[0]))
        for name, value in lines:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def http_remote(
    root: Path,
    *,
    secured: bool = True,
    login: str = f"person:{PASSWORD}",
    given: list[str] | None = None,
    settings: dict[str, str] | None = None,
    port: int = 0,
) -> Iterator[str]:
    """Serve the bare repositories of a directory; yields the address.

    Args:
        login: the user and the password that it takes.
        given: gets the other logins that were tried.
        settings: configuration of its git.
        port: by default any that is free.
    """
    tried = [] if given is None else given
    served = {
        "root": root,
        "secured": secured,
        "login": login,
        "given": tried,
        "settings": {} if settings is None else settings,
    }
    handler = type("Handler", (_Handler,), served)
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def credential_helper(path: Path, password: str = PASSWORD) -> Path:
    """Write a credential helper that knows the person's password."""
    path.write_text(f"#!{sys.executable}\nprint('username=person\\npassword={password}')\n")
    path.chmod(0o755)
    return path
