"""A person's home directory with an agent in it, as each way to install programs leaves it.

Each function makes the program `agent` below a home and returns the directory that the person's
PATH has for it. Called, it says how it was found and its arguments. Interpreters are scripts, so
nothing has to be installed.
"""

import sys
from pathlib import Path

PYTHON = Path(sys.executable).resolve()


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def link(path: Path, target: str | Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return path


def interpreter(path: Path, name: str) -> Path:
    """Says its name and the script's, which like Node it resolves; its package has to be there."""
    beside = '"$(dirname "$(realpath "$1")")/../package.json"'
    return put(
        path,
        f'#!/bin/sh\ncat {beside} >/dev/null || exit 9\necho "{name} $(basename "$(realpath "$1")")"\n',
    )


def node_package(directory: Path) -> Path:
    put(directory / "package.json", '{"name": "agent", "version": "1.2.3"}')
    return put(directory / "bin" / "agent.js", "#!/usr/bin/env node\n")


def npm_global(home: Path) -> Path:
    prefix = home / ".nvm/versions/node/v22.1.0"
    interpreter(prefix / "bin/node", "node")
    node_package(prefix / "lib/node_modules/@acme/agent")
    put(prefix / "lib/node_modules/other/index.js", "")
    return link(prefix / "bin/agent", "../lib/node_modules/@acme/agent/bin/agent.js").parent


def fnm(home: Path) -> Path:
    installation = home / ".local/share/fnm/node-versions/v22.1.0/installation"
    interpreter(installation / "bin/node", "node")
    node_package(installation / "lib/node_modules/agent")
    link(installation / "bin/agent", "../lib/node_modules/agent/bin/agent.js")
    return link(home / ".local/state/fnm_multishells/7_1", installation) / "bin"


def volta(home: Path) -> Path:
    programs = home / ".volta/bin"
    put(programs / "volta-shim", "#!/bin/sh\necho the shim ran\n")
    for name in ("agent", "node"):
        link(programs / name, "volta-shim")
    image = home / ".volta/tools/image"
    for version in ("9.1.0", "22.1.0"):
        interpreter(image / "node" / version / "bin/node", "node")
    package = image / "packages/@acme/agent"
    node_package(package / "lib/node_modules/@acme/agent")
    link(package / "bin/agent", "../lib/node_modules/@acme/agent/bin/agent.js")
    return programs


def mise(home: Path) -> Path:
    """Its shims are links to itself. Packages of npm are installs of their own."""
    root = home / ".local/share/mise"
    manager = put(home / ".local/bin/mise", "#!/bin/sh\necho the shim ran\n")
    for name in ("agent", "node"):
        link(root / "shims" / name, manager)
    for version in ("9.1.0", "22.1.0"):
        interpreter(root / "installs/node" / version / "bin/node", "node")
    link(root / "installs/node/latest", "./22.1.0")
    package = root / "installs/npm-acme-agent/1.2.3"
    node_package(package / "lib/node_modules/@acme/agent")
    link(package / "bin/agent", "../lib/node_modules/@acme/agent/bin/agent.js")
    return root / "shims"


def asdf(home: Path) -> Path:
    """Its shims are scripts. Packages of npm lie with the Node that installed them."""
    root = home / ".asdf"
    for name in ("agent", "node"):
        put(root / "shims" / name, f'#!/usr/bin/env bash\nexec asdf exec "{name}" "$@"\n')
    for version in ("9.1.0", "22.1.0"):
        node = root / "installs/nodejs" / version
        interpreter(node / "bin/node", "node")
        node_package(node / "lib/node_modules/@acme/agent")
        link(node / "bin/agent", "../lib/node_modules/@acme/agent/bin/agent.js")
    return root / "shims"


def pyenv(home: Path) -> Path:
    root = home / ".pyenv"
    put(root / "shims/agent", '#!/usr/bin/env bash\nexec pyenv exec agent "$@"\n')
    version = root / "versions/3.12.1"
    python = link(version / "bin/python3.12", PYTHON)
    put(version / "bin/agent", f"#!{python}\nimport sys\nprint('python', *sys.argv[1:])\n")
    return root / "shims"


def pnpm(home: Path) -> Path:
    top = home / ".local/share/pnpm"
    node_package(top / "global/5/.pnpm/agent@1.2.3/node_modules/agent")
    link(top / "global/5/node_modules/agent", "../.pnpm/agent@1.2.3/node_modules/agent")
    interpreter(home / "tools/node", "node")
    script = """#!/bin/sh
basedir=$(dirname "$(echo "$0" | sed -e 's,\\\\,/,g')")
if [ -x "$basedir/node" ]; then
  exec "$basedir/node"  "$basedir/global/5/node_modules/agent/bin/agent.js" "$@"
else
  exec node  "$basedir/global/5/node_modules/agent/bin/agent.js" "$@"
fi
"""
    link(top / "node", home / "tools/node")
    return put(top / "agent", script).parent


def bun(home: Path) -> Path:
    modules = home / ".bun/install/global/node_modules"
    node_package(modules / "agent")
    put(modules / "needed/index.js", "")
    interpreter(home / ".bun/bin/node", "node")
    return link(home / ".bun/bin/agent", "../install/global/node_modules/agent/bin/agent.js").parent


def pipx(home: Path) -> Path:
    environment = home / ".local/share/pipx/venvs/agent"
    python = home / ".local/share/uv/python/cpython-3.13.1-linux"
    put(python / "bin/python3.13", '#!/bin/sh\ncat "$0".txt "$(dirname "$1")/../pyvenv.cfg"\n')
    put(python / "bin/python3.13.txt", "no library\n")
    short = link(python.parent / "cpython-3.13-linux", python.name)
    put(environment / "pyvenv.cfg", f"home = {short}/bin\n")
    link(environment / "bin/python", short / "bin/python3.13")
    put(environment / "bin/python.txt", "python agent\n")
    put(environment / "bin/agent", f"#!{environment}/bin/python\n")
    return link(home / ".local/bin/agent", environment / "bin/agent").parent


def pip_user(home: Path) -> Path:
    base = home / ".local"
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    put(base / f"lib/{version}/site-packages/agent_package.py", "NAME = 'python agent'\n")
    script = "import sys\nfrom agent_package import NAME\nprint(NAME, *sys.argv[1:])\n"
    return put(base / "bin/agent", f"#!{PYTHON}\n{script}").parent


def cargo(home: Path) -> Path:
    return put(home / ".cargo/bin/agent", '#!/bin/sh\necho "cargo agent $@"\n').parent


def own_installer(home: Path) -> Path:
    true = put(home / ".local/share/agent/versions/1.2.3/run", '#!/bin/sh\necho "own agent $@"\n')
    return link(home / ".local/bin/agent", true).parent


def started_by_script(home: Path) -> Path:
    modules = home / ".agent/local/node_modules"
    node_package(modules / "agent")
    link(modules / ".bin/agent", "../agent/bin/agent.js")
    interpreter(home / "tools/node", "node")
    script = f'#!/bin/bash\nexec "{modules}/.bin/agent" "$@"\n'
    put(home / ".local/bin/agent", script)
    link(home / ".local/bin/node", home / "tools/node")
    return home / ".local/bin"


WAYS = {
    npm_global: "node agent.js",
    fnm: "node agent.js",
    volta: "node agent.js",
    mise: "node agent.js",
    asdf: "node agent.js",
    pyenv: "python one",
    pnpm: "node agent.js",
    bun: "node agent.js",
    pipx: "python agent",
    pip_user: "python agent",
    cargo: "cargo agent",
    own_installer: "own agent",
    started_by_script: "node agent",
}
"""Each way to install a program, and how the agent's answer begins."""
