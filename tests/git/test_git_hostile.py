"""A hostile replica: nothing that an agent leaves in its repository runs, or is read, outside its sandbox.

Traps are set in the repository of a replica that is awake and of one that sleeps. Then every
operation is carried out, and at last each trap is sprung by plain git on this machine, which shows
that it would have caught an operation that ran outside the sandbox.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.git.conftest import KEPT, RESTORED, Shop, commit
from tests.git.remotes import bare_copy
from tests.support.git import GIT, git, make_repository
from tests.support.installation import Installation, refused

EVIL = """#!/bin/sh
touch {mark} 2> /dev/null
[ "$1" != filter ] || exec cat
"""


@dataclass(frozen=True)
class Trap:
    """Something that makes git run a program, here `./evil`; in a test it has a name of its own.

    `script` sets it inside; `sprung` are arguments of a git that runs into it, with `data` as input.
    """

    script: str
    sprung: str
    data: str = ""


ATTRIBUTE = "echo '* {0}=x' >> .gitattributes; echo changed > README; git config {1}"
TRAPS = {
    "hooks": Trap(
        "for name in pre-commit pre-push post-checkout post-commit post-index-change pre-rebase"
        " reference-transaction; do cp evil .git/hooks/$name; done",
        "commit --quiet --allow-empty -m x",
    ),
    "hooks elsewhere": Trap(
        "mkdir hooks; for name in pre-commit pre-push post-checkout reference-transaction;"
        " do cp evil hooks/$name; done; git config core.hooksPath hooks",
        "commit --quiet --allow-empty -m x",
    ),
    "fsmonitor": Trap("git config core.fsmonitor ./evil", "status"),
    "ssh": Trap(
        "git config core.sshCommand ./evil; git config remote.origin.url ssh://a/b;"
        " git config remote.origin.pushurl ssh://a/b; git config --unset remote.origin.vcs",
        "fetch origin",
    ),
    "ext": Trap(
        "git config remote.origin.url ext::./evil; git config remote.origin.pushurl ext::./evil;"
        " git config protocol.ext.allow always; git config --unset remote.origin.vcs",
        "fetch origin",
    ),
    "an address that becomes ext": Trap(
        "git config 'url.ext::./evil .insteadOf' /; git config protocol.ext.allow always",
        "fetch /anything",
    ),
    "a credential helper": Trap(
        "git config credential.helper '!./evil'", "credential fill", "url=https://a/b\n\n"
    ),
    "a filter that cleans": Trap(
        ATTRIBUTE.format("filter", "filter.x.clean './evil filter'"), "add --all"
    ),
    "a filter that smudges": Trap(
        ATTRIBUTE.format("filter", "filter.x.smudge './evil filter'"),
        "checkout --force HEAD README",
    ),
    "textconv": Trap(ATTRIBUTE.format("diff", "diff.x.textconv ./evil"), "diff"),
    "external diff": Trap("echo changed > README; git config diff.external ./evil", "diff"),
    "a merge driver": Trap(
        ATTRIBUTE.format("merge", "merge.x.driver ./evil") + "; git commit -qam Mine",
        "merge -m x theirs",
    ),
    "an editor": Trap("git config core.editor ./evil", "commit --allow-empty"),
    "gpg": Trap(
        "git config gpg.program ./evil; git config commit.gpgSign true;"
        " git config user.signingKey x",
        "commit --allow-empty -m x",
    ),
    "alternate refs": Trap(
        "git config core.alternateRefsCommand ./evil", "fetch --no-tags {source} main"
    ),
    "a submodule": Trap(
        "git init -q sub; git -C sub commit -q --allow-empty -m Sub;"
        " git -C sub config core.fsmonitor ../evil;"
        " git -c advice.addEmbeddedRepo=false add sub;"
        " printf '[submodule \"sub\"]\\n\\tpath = sub\\n\\turl = ./sub\\n' > .gitmodules;"
        " git config submodule.sub.active true; git config submodule.recurse true",
        "status",
    ),
    "a command of a submodule": Trap(
        "git init -q sub; git -C sub commit -q --allow-empty -m Sub;"
        " git -c advice.addEmbeddedRepo=false add sub; git -C sub commit -q --allow-empty -m More;"
        " printf '[submodule \"sub\"]\\n\\tpath = sub\\n\\turl = ./sub\\n' > .gitmodules;"
        " git config submodule.sub.url ./sub; git config submodule.sub.update '!../evil'",
        "submodule update",
    ),
}
# Traps that are set together, for every operation takes its time. None of a group keeps git from
# another: one source, one path of hooks, one way to show differences. Nor does one make an operation
# be refused that another alone lets pass: those that change README conflict, gpg refuses a commit.
GROUPS = (
    ("a filter that cleans", "external diff"),
    ("a filter that smudges", "textconv"),
    ("a merge driver", "hooks", "an address that becomes ext", "an editor"),
    ("hooks elsewhere", "ssh", "a submodule"),
    ("fsmonitor", "ext", "a command of a submodule"),
    ("gpg", "a credential helper", "alternate refs"),
)
assert sorted(sum(GROUPS, ())) == sorted(TRAPS)


@dataclass(frozen=True)
class Field:
    """Two replicas of one repository; what is done in `awake` can be copied to `asleep`."""

    awake: Shop
    asleep: Shop
    remote: Path
    theirs: str
    """A commit that the base branch got after the replicas were made."""

    @property
    def here(self) -> Path:
        """Where the files of the repository of `awake` are on this machine."""
        return files_of(self.awake)

    def set_trap(self, script: str) -> None:
        """Change the repository of `awake`, and let `asleep` have the same."""
        self.awake.run(script)
        place = files_of(self.asleep)
        shutil.rmtree(place)
        copy(self.here, place)

    def copy(self, place: Path) -> Path:
        """Copy the repository of `awake` to where plain git can work in it."""
        copy(self.here, place)
        alternates = place / ".git/objects/info/alternates"
        mirrors = self.awake.deck.home.mirrors
        alternates.write_text(
            str(mirrors / Path(alternates.read_text().strip()).parent.name / "objects")
        )
        return place

    def carry_out_everything(self, tmp_path: Path) -> list[str]:
        """Carry out every operation, which may be refused; return what was answered."""
        answers: list[str] = []
        for shop in (self.asleep, self.awake):
            for method, path, body in (
                ("GET", "", None),
                ("GET", "/shop/diff?against=uncommitted", None),
                ("GET", "/shop/diff", None),
                ("POST", "/shop/commit", {"message": "x"}),
                ("POST", "/shop/update", {"strategy": "merge", "autostash": True}),
                ("POST", "/shop/push", {"force": True}),
            ):
                if shop is self.asleep and method == "POST":
                    continue
                answer = shop.deck.ask(method, f"{shop.path}{path}", json=body)
                assert answer.status_code in (200, 409), answer.text
                answers.append(answer.text)
            answers.append(fetch(shop, tmp_path / f"fetched-{shop.id}"))
        done = self.awake.deck.run(
            self.awake.id, "cd shop; git push service +HEAD:refs/heads/inside 2>&1"
        )
        return [*answers, done["output"]]


def files_of(shop: Shop) -> Path:
    """Return where the files of the repository of a replica are on this machine."""
    return shop.deck.place(shop.id) / "files" / "shop"


def copy(place: Path, other: Path) -> None:
    """Copy files with their owners."""
    subprocess.run(["cp", "-a", str(place), str(other)], check=True)


def fetch(shop: Shop, place: Path) -> str:
    """Fetch everything that a replica serves by the HTTP protocol; return what git said."""
    git(shop.deck.base, "init", "-q", "--bare", str(place))
    address = f"http://127.0.0.1:{shop.deck.port}{shop.path}/shop/repo.git"
    bearer = f"http.extraHeader=Authorization: Bearer {shop.deck.key}"
    command = ["git", "-c", bearer, "fetch", "-q", address, "+refs/*:refs/*"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def _field(
    git_deck: Installation,
    tmp_path_factory: pytest.TempPathFactory,
    require_tool: Callable[[str], str],
) -> Iterator[Field]:
    require_tool("bwrap")
    base = tmp_path_factory.mktemp("hostile")
    checkout = make_repository(base / "first")
    remote = bare_copy(checkout, base / "shop.git")
    environment = git_deck.environment_with(git_deck.connect(str(remote)), push="any")
    ids = [git_deck.create(environment) for _ in range(2)]
    awake, asleep = (Shop(git_deck, remote, id) for id in ids)
    service = "git remote add service x; git config remote.service.vcs qd;"
    awake.run(f"{service} git config remote.service.qdRepository shop; {KEPT}")
    asleep.sleep()
    theirs = commit(checkout, "README", "theirs\n")
    git(checkout, "push", "-q", str(remote), "main")
    yield Field(awake, asleep, remote, theirs)
    for id in ids:
        git_deck.delete(id)


@pytest.fixture
def field(_field: Field) -> Iterator[Field]:
    """The replicas, whose repositories are afterwards as they were before."""
    yield _field
    _field.awake.run(RESTORED)


@pytest.mark.long
@pytest.mark.parametrize("names", GROUPS, ids=", ".join)
def test_nothing_that_a_replica_has_runs_outside_of_it(
    field: Field, tmp_path: Path, names: Sequence[str]
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    for place in (tmp_path, marks):
        place.chmod(0o777)
    scripts = ["mkdir -p .git/hooks"]
    for name in names:
        program = name.replace(" ", "-")
        evil = EVIL.format(mark=marks / program).replace("\n", "\\n")
        scripts += [f"printf '{evil}' > {program}; chmod +x {program}"]
        scripts += [TRAPS[name].script.replace("evil", program)]
    field.set_trap("; ".join(scripts))
    plain = {name: field.copy(tmp_path / name.replace(" ", "-")) for name in names}
    field.carry_out_everything(tmp_path)
    assert [one.name for one in marks.iterdir()] == [], "these traps ran outside"
    for name, place in plain.items():
        git(place, "-c", "safe.directory=*", "-c", "core.fsmonitor=", "-c", "core.alternateRefsCommand=true",
            "-c", "core.hooksPath=/dev/null", "update-ref", "refs/heads/theirs", field.theirs)  # fmt: skip
        trap = TRAPS[name]
        words = trap.sprung.format(source=field.remote).split()
        command = [*GIT, "-c", "safe.directory=*", *words]
        subprocess.run(command, cwd=place, input=trap.data, capture_output=True, text=True)
        assert (marks / name.replace(" ", "-")).exists(), f"the trap was not set: {name}"


POINTERS = {
    "alternates": (
        "echo {others[0]}/objects >> .git/objects/info/alternates;"
        " printf '\"%s\"\\n' {others[1]}/objects >> .git/objects/info/alternates;"
        " echo ../../../../../../../../../../../../../../..{others[2]}/objects"
        " >> .git/objects/info/alternates"
    ),
    "a linked directory": "ln -s {others[0]}/objects/?? {others[0]}/objects/pack .git/objects/ || true;"
    " for n in $(seq 0 255); do d=$(printf %02x $n); ln -sfn {others[0]}/objects/$d .git/objects/$d; done",
    "a linked repository": "mv .git ../.git-before; ln -s {others[0]} .git",
    "a file in its place": "mv .git ../.git-before; echo 'gitdir: {others[0]}' > .git",
    "a common directory": "echo {others[0]} > .git/commondir",
}


@pytest.mark.long
@pytest.mark.parametrize("pointer", POINTERS.values(), ids=POINTERS)
def test_a_replica_reads_no_repository_beside_its_own(
    field: Field, tmp_path: Path, pointer: str
) -> None:
    """A pointer may lead to several repositories, each with a secret of its own."""
    others = [make_repository(tmp_path / f"other{n}") for n in range(3) if f"[{n}]" in pointer]
    secrets = [commit(other, "secret", f"planted-secret {n}\n") for n, other in enumerate(others)]
    subprocess.run(["chmod", "-R", "a+rX", str(tmp_path)], check=True)
    field.set_trap(pointer.format(others=[other / ".git" for other in others]))
    plain = tmp_path / "plain"
    copy(field.here, plain)
    answers = field.carry_out_everything(tmp_path)
    for secret in secrets:
        for script in (
            f"git cat-file -p {secret}:secret",
            f"mkdir -p .git/refs/heads; echo {secret} > .git/refs/heads/leak",
            f"git push service {secret}:refs/heads/leak",
        ):
            answers.append(field.awake.deck.run(field.awake.id, f"cd shop; {script}")["output"])
        body = {"branch": "leak"}
        answers.append(
            field.awake.deck.ask("POST", f"{field.awake.path}/shop/push", json=body).text
        )
        leaked = tmp_path / f"leaked-{secret}"
        answers.append(fetch(field.awake, leaked))
        for place in (leaked, field.remote):
            asked = ["git", "cat-file", "-e", secret]
            assert subprocess.run(asked, cwd=place, capture_output=True).returncode != 0
    assert "planted-secret" not in str(answers)
    for n, secret in enumerate(secrets):
        shown = git(plain, "-c", "safe.directory=*", "cat-file", "-p", f"{secret}:secret")
        assert shown == f"planted-secret {n}"  # a git outside would have read it


NAMES = (
    "refs/heads/--upload-pack=touch\\${IFS}x",
    "refs/heads/-x",
    "refs/heads/a..b",
    "refs/heads/../../outside",
    "refs/heads/new\\nline",
    "refs/heads/\\033[31m",
    "refs/heads/$(touch x)",
    "refs/heads/x.lock",
    "refs/../../outside",
    "refs/qd/turns/0",
    "HEAD",
)


@pytest.mark.long
def test_crafted_names_of_refs_do_no_harm(field: Field, tmp_path: Path) -> None:
    lines = "".join(f"$head {name}\\n" for name in NAMES).replace("$(", "\\$(")
    field.set_trap(
        "head=$(git rev-parse HEAD); git commit -q --allow-empty -m More;"
        f' printf "{lines}" >> .git/packed-refs'
    )
    answers = field.carry_out_everything(tmp_path)
    assert len(answers) > 1
    head = field.awake.run("git rev-parse HEAD").strip()
    deck, path = field.awake.deck, f"{field.awake.path}/shop/push"
    for name in NAMES:
        branch = name.removeprefix("refs/heads/")
        answer = deck.ask("POST", path, json={"branch": branch})
        assert answer.status_code in (200, 409), answer.text
        names = git(field.remote, "for-each-ref", "--format=%(refname)").splitlines()
        assert all(one.startswith(("refs/heads/", "refs/tags/")) for one in names)
    git(field.remote, "fsck", "--strict")
    assert not [*field.remote.parent.glob("**/outside"), *field.remote.parent.glob("**/x")]
    # What is well named is pushed all the same.
    field.awake.run("git update-ref refs/heads/-x HEAD")
    assert deck.post(path, {"branch": "-x"})["commit"] == head
    assert git(field.remote, "rev-parse", "refs/heads/-x") == head


@pytest.mark.long
@pytest.mark.parametrize(
    "content", ["ref: refs/heads/../../../outside", "ref: /etc/passwd", "-x", "link"]
)
def test_a_crafted_head_does_no_harm(field: Field, tmp_path: Path, content: str) -> None:
    made = (
        "ln -sf /etc/passwd .git/HEAD"
        if content == "link"
        else f"printf '%s\\n' '{content}' > .git/HEAD"
    )
    field.set_trap(made)
    answers = field.carry_out_everything(tmp_path)
    assert "root:" not in str(answers)


CRAFTED = {
    "a tree with .git": "blob=$(echo x | git hash-object -w --stdin);"
    " sub=$(printf '100644 blob %s\\tconfig\\n' $blob | git mktree);"
    " tree=$(printf '040000 tree %s\\t.git\\n' $sub | git mktree)",
    "a path upwards": "blob=$(echo x | git hash-object -w --stdin);"
    " sub=$(printf '100644 blob %s\\tx\\n' $blob | git mktree);"
    " tree=$(printf '040000 tree %s\\t..\\n' $sub | git mktree)",
    "a hostile submodule": "blob=$(printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = --upload-pack=x\\n'"
    " | git hash-object -w --stdin); tree=$(printf '100644 blob %s\\t.gitmodules\\n' $blob | git mktree)",
    "a linked .gitmodules": "blob=$(printf '/etc/passwd' | git hash-object -w --stdin);"
    " tree=$(printf '120000 blob %s\\t.gitmodules\\n' $blob | git mktree)",
}


@pytest.mark.long
@pytest.mark.parametrize("script", CRAFTED.values(), ids=CRAFTED)
def test_crafted_objects_are_refused(field: Field, tmp_path: Path, script: str) -> None:
    shop = field.awake
    made = "git update-ref refs/heads/crafted $(git commit-tree -p HEAD -m crafted $tree)"
    shop.run(
        f"{script}; {made}; git checkout -q -f crafted || git symbolic-ref HEAD refs/heads/crafted"
    )
    answer = shop.deck.ask("POST", f"{shop.path}/shop/push", json={"branch": "crafted"})
    refused(answer, 409, "CONFLICT", "The replica's commits cannot be read", "fsck")
    done = shop.deck.run(shop.id, "cd shop; git push service crafted 2>&1")
    assert done["exit_code"] != 0
    assert "crafted" not in git(field.remote, "branch")
    # The person's own fetch refuses them, too.
    checkout = tmp_path / "checkout"
    git(tmp_path, "clone", "-q", str(field.remote), str(checkout))
    told = shop.deck.qd("replica", "fetch", shop.id, cwd=checkout)
    assert told.returncode == 1, told.stderr
    assert "crafted" not in git(checkout, "branch")


@pytest.mark.long
def test_ten_thousand_refs_are_no_hindrance(field: Field, tmp_path: Path) -> None:
    shop = field.awake
    shop.run(
        "head=$(git rev-parse HEAD); for n in $(seq 10000); do"
        " echo create refs/remotes/origin/b$n $head; echo create refs/heads/c$n $head; done"
        " | git update-ref --stdin; git commit -q --allow-empty -m More"
    )
    head = shop.run("git rev-parse HEAD").strip()
    done = shop.deck.post(f"{shop.path}/shop/push", {"force": True})
    assert done["commit"] == head
    checkout = tmp_path / "checkout"
    git(tmp_path, "clone", "-q", str(field.remote), str(checkout))
    told = shop.deck.qd("replica", "fetch", shop.id, cwd=checkout)
    assert told.returncode == 0, told.stderr
    assert len(git(checkout, "branch").splitlines()) == 2


def test_a_checkout_takes_commits_and_nothing_of_the_configuration(
    field: Field, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    tmp_path.chmod(0o777)
    evil = EVIL.format(mark=mark).replace("\n", "\\n")
    scripts = "; ".join(
        TRAPS[name].script for name in ("fsmonitor", "ssh", "textconv", "a filter that smudges")
    )
    field.awake.run(f"printf '{evil}' > evil; chmod +x evil; {scripts}; git add -A")
    field.awake.run("git -c core.fsmonitor= commit -qm Hostile")
    checkout = tmp_path / "checkout"
    git(tmp_path, "clone", "-q", str(field.remote), str(checkout))
    for verb in ("apply", "merge"):
        git(checkout, "reset", "-q", "--hard", f"{field.theirs}~1")
        git(checkout, "clean", "-q", "-f")
        done = field.awake.deck.qd("replica", verb, field.awake.id, cwd=checkout)
        assert done.returncode == 0, done.stderr
        assert (checkout / "evil").exists()
    assert not mark.exists()


FAKE_GIT = """
mkdir -p ~/.local/bin
cat > ~/.local/bin/git <<'END'
#!/bin/sh
{0}
END
chmod +x ~/.local/bin/git
"""
MANY = (
    'exec awk \'BEGIN { for (;n < 300000; n++) print "refs/qd/turns/" n, "0123456789", 1, "x" }\''
)


@pytest.mark.long
def test_an_answer_of_any_length_in_the_place_of_git_is_refused(field: Field) -> None:
    shop, deck = field.awake, field.awake.deck
    shop.run(FAKE_GIT.format(MANY))
    try:
        before = memory(deck)
        answer = deck.ask("GET", f"/v1/replica/{shop.id}/checkpoints")
        text = "The answer of git in the sandbox cannot be read. Run git in the replica's terminal to see what it prints."
        refused(answer, 502, "ENGINE_UNREACHABLE", text)
        answer = deck.ask("POST", f"{shop.path}/shop/push", json={})
        refused(answer, 409, "CONFLICT", "git refused this.", "Argument list too long")
        assert memory(deck) - before < 64 << 20
    finally:
        deck.run(shop.id, "rm ~/.local/bin/git")


def memory(deck: Installation) -> int:
    """Return the most bytes of memory that the service has had."""
    status = Path(f"/proc/{deck.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
