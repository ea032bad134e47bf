"""git inside a replica: `origin` is reached by the service, with the person's credentials."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.git.conftest import Shop, block, commit
from tests.git.remotes import PASSWORD, bare_copy, credential_helper, http_remote
from tests.support.git import git, make_repository
from tests.support.installation import Installation, refused
from tests.support.waiting import until

Open = Callable[..., Shop]


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """A bare repository to push to."""
    return bare_copy(make_repository(tmp_path / "first"), tmp_path / "shop.git")


def tried(shop: Shop, script: str) -> tuple[int, str]:
    """Run a script inside; return its exit status and what it printed, errors included."""
    done = shop.deck.run(shop.id, f"cd shop && ({script}) 2>&1", seconds=50)
    return done["exit_code"], done["output"]


@pytest.mark.long
def test_fetch_pull_and_ls_remote_see_the_source_as_it_is_now(
    open_shop: Open, remote: Path, tmp_path: Path
) -> None:
    shop = open_shop(str(remote))
    theirs = tmp_path / "theirs"
    git(tmp_path, "clone", "-q", str(remote), str(theirs))
    head = commit(theirs, "theirs", "theirs")
    git(theirs, "tag", "v1")
    git(theirs, "push", "-q", "origin", "main", "v1")
    assert shop.run("git remote get-url origin").strip() == str(remote)
    assert shop.run("git remote -v").split()[:2] == ["origin", str(remote)]
    assert f"{head}\trefs/heads/main" in shop.run("git ls-remote origin")
    shop.run("git fetch -q")
    assert shop.run("git rev-parse origin/main v1").split() == [head, head]
    shop.run("git pull -q --rebase origin main")
    assert shop.run("cat theirs") == "theirs"
    assert "quarterdeck" not in shop.run("git ls-remote origin")


@pytest.mark.long
def test_heads_of_pull_requests_are_fetched_by_name(open_shop: Open, remote: Path) -> None:
    shop = open_shop(str(remote))
    made = git(remote, "commit-tree", "-m", "Theirs", "main^{tree}")
    git(remote, "update-ref", "refs/pull/7/head", made)
    shop.run("git fetch -q origin refs/pull/7/head")
    assert shop.run("git rev-parse FETCH_HEAD").strip() == made
    shop.run("git fetch -q origin pull/7/head:theirs")
    assert shop.run("git rev-parse theirs").strip() == made
    status, said = tried(shop, "git fetch origin refs/pull/8/head")
    assert status != 0 and "couldn't find remote ref" in said, said


def test_the_own_branch_is_pushed_without_a_question(open_shop: Open, remote: Path) -> None:
    shop = open_shop(str(remote), push="own_branch")
    shop.run("echo more > more; git add more; git commit -qm More")
    branch = shop.run("git branch --show-current").strip()
    status, said = tried(shop, "git push -u origin HEAD")
    assert status == 0 and f"HEAD -> {branch}" in said, said
    assert git(remote, "log", "-1", "--format=%s %an", branch).startswith("More ")
    assert "origin/" in shop.run("git status -sb")
    shop.run("git commit -q --amend -m Again; git push -q --force-with-lease")
    assert git(remote, "log", "-1", "--format=%s", branch) == "Again"
    status, said = tried(shop, "git push origin HEAD:refs/heads/main")
    assert status == 1 and "Only the replica's own branch may be pushed" in said, said
    status, said = tried(shop, "git tag v2; git push origin v2")
    assert status == 1 and "Refused: refs/tags/v2" in said, said
    shop.run(f"git push -q origin :{branch}")
    assert branch not in git(remote, "branch")


@pytest.mark.long
def test_branches_of_a_replica_whose_name_leads_below_anothers_are_its_own(
    git_deck: Installation, remote: Path, require_tool: Callable[[str], str]
) -> None:
    require_tool("bwrap")
    environment = git_deck.environment_with(git_deck.connect(str(remote)), push="own_branch")
    outer = Shop(git_deck, remote, git_deck.create(environment, name="own"))
    inner = Shop(git_deck, remote, git_deck.create(environment, name="own/inner"))
    try:
        inner.run("git commit -q --allow-empty -m Inner; git push -q origin HEAD")
        before = git(remote, "for-each-ref")
        outer.run("git commit -q --allow-empty -m Outer")
        theirs = "refs/heads/qd/own"
        for pushed in (f"+HEAD:{theirs}/inner", f":{theirs}/inner", f"HEAD:{theirs}/Inner/2"):
            status, said = tried(outer, f"git push origin {pushed}")
            assert status == 1 and "Only the replica's own branch may be pushed" in said, said
        assert git(remote, "for-each-ref") == before
        outer.run("git push -q origin HEAD:refs/heads/qd/own/innermost")
        twin = Shop(git_deck, remote, git_deck.create(environment, name="own/inner."))
        try:
            status, said = tried(twin, "git push origin +HEAD:refs/heads/qd/own/inner")
            assert status == 1 and "Only the replica's own branch may be pushed" in said, said
        finally:
            git_deck.delete(twin.id)
    finally:
        for shop in (inner, outer):
            git_deck.delete(shop.id)
    assert git(remote, "log", "-1", "--format=%s", "qd/own/inner") == "Inner"


@pytest.mark.long
def test_nothing_may_be_pushed_by_the_policy_never(open_shop: Open, remote: Path) -> None:
    shop = open_shop(str(remote), push="never")
    before = git(remote, "for-each-ref")
    status, told = tried(shop, "git commit -q --allow-empty -m x; git push origin HEAD")
    assert status == 1 and "Pushing is disabled for this replica" in told, told
    assert git(remote, "for-each-ref") == before


@pytest.mark.long
def test_any_branch_may_be_pushed_by_the_policy_any_but_none_overwritten_or_removed(
    open_shop: Open, remote: Path
) -> None:
    shop = open_shop(str(remote), push="any")
    before = git(remote, "for-each-ref")
    shop.run("git commit -q --allow-empty -m More")
    for push in ("git push -f origin HEAD~2:main", "git push origin :main"):
        status, told = tried(shop, push)
        assert status == 1 and "may be overwritten or removed" in told, (push, told)
        assert git(remote, "for-each-ref") == before, push
    shop.run("git tag v1; git push -q origin HEAD:main v1")
    assert git(remote, "log", "-1", "--format=%s", "v1") == "More"
    assert git(remote, "log", "-1", "--format=%s", "main") == "More"


@pytest.mark.long
def test_a_push_that_the_source_refuses_says_why(
    open_shop: Open, remote: Path, tmp_path: Path
) -> None:
    shop = open_shop(str(remote), push="any")
    theirs = tmp_path / "theirs"
    git(tmp_path, "clone", "-q", str(remote), str(theirs))
    commit(theirs, "theirs", "theirs")
    git(theirs, "push", "-q")
    status, said = tried(shop, "git commit -q --allow-empty -m x; git push origin HEAD:main")
    assert status == 1 and re.search("fetch first|non-fast-forward", said), said
    remote.rename(tmp_path / "away")
    status, said = tried(shop, "git push origin HEAD")
    assert status != 0 and "could not be fetched" in said, said
    status, said = tried(shop, "git fetch origin")
    assert status != 0 and "could not be fetched" in said, said


PUSH = "git commit -q --allow-empty -m {0}; git push origin HEAD:{1}"


class Chat:
    """The chat of a replica, in which the built-in agent pushes."""

    def __init__(self, shop: Shop) -> None:
        self.deck, self.id = shop.deck, shop.id
        self.pushes = 0

    def push(self, title: str, branch: str) -> None:
        """Let the agent push."""
        self.pushes += 1
        self.deck.send(self.id, block(PUSH.format(title, branch)))

    @property
    def waits(self) -> bool:
        """Whether a person is asked something."""
        chats = self.deck.replica(self.id)["chats"]
        return bool(chats) and chats[0]["awaiting_input"]

    def answer(self, option: str) -> str:
        """Wait for a question and answer it; return the question."""
        until(lambda: self.waits, "the question")
        shown = self.deck.qd("replica", "respond", self.id).stdout
        done = self.deck.qd("replica", "respond", self.id, "--option", option)
        assert done.returncode == 0, done.stderr
        return shown

    def ended(self) -> str:
        """Wait for the end of the turn; return all that was told in the chat."""

        def found() -> str | None:
            told = self.deck.history(self.id)
            ended = [one for one in told if one["type"] == "turn-result"]
            return str(told) if len(ended) == self.pushes else None

        return until(found, "the end of the turn")


@pytest.mark.long
def test_a_person_is_asked_in_the_chat(open_shop: Open, remote: Path) -> None:
    shop = open_shop(str(remote))
    branch = shop.run("git branch --show-current").strip()
    chat = Chat(shop)
    chat.push("One", branch)
    assert f"Push {branch} at the source of shop, with your credentials?" in chat.answer("reject")
    assert "did not allow the push" in chat.ended()
    assert branch not in git(remote, "branch")
    chat.push("Two", "main")
    assert "push-always" not in chat.answer("push")
    chat.ended()
    assert git(remote, "log", "-1", "--format=%s", "main") == "Two"
    chat.push("Three", branch)
    chat.answer("push-always")
    chat.ended()
    chat.push("Four", branch)
    chat.ended()
    assert git(remote, "log", "-1", "--format=%s", branch) == "Four"
    assert not chat.waits
    chat.push("Five", "main")  # it was allowed for its own branch
    assert "Only the replica's own branch" in chat.ended()


@pytest.mark.long
def test_a_question_ends_with_the_turn(open_shop: Open, remote: Path) -> None:
    shop = open_shop(str(remote))
    chat = Chat(shop)
    chat.push("One", "main")
    until(lambda: chat.waits, "the question")
    shop.deck.post(f"/v1/replica/{shop.id}/chats/{shop.deck.chat(shop.id)}/interrupt")
    until(lambda: not chat.waits, "the end of the question")
    told = str(shop.deck.history(shop.id))
    assert "permission_outcome" in told and "cancelled" in told
    assert git(remote, "log", "-1", "--format=%s", "main") != "One"


@pytest.mark.long
def test_a_push_from_a_terminal_is_asked_about_too(open_shop: Open, remote: Path) -> None:
    shop = open_shop(str(remote))
    chat = Chat(shop)
    shop.run("(git push origin HEAD >push.log 2>&1; echo ended-$? >> push.log) & true")
    chat.answer("push")
    until(lambda: "ended-0" in shop.run("cat push.log"), "the push")
    assert not chat.waits


@pytest.mark.long
def test_nothing_is_pushed_for_a_git_that_was_killed(open_shop: Open, remote: Path) -> None:
    shop = open_shop(str(remote))
    chat = Chat(shop)
    shop.deck.send(shop.id, "Hello")
    until(lambda: "turn-result" in str(shop.deck.history(shop.id)), "the end of the turn")
    before = git(remote, "for-each-ref")
    shop.run("git commit -q --allow-empty -m More; setsid git push origin HEAD >log & echo $! >pid")
    until(lambda: chat.waits, "the question")
    shop.run("kill -9 -$(cat pid)")
    chat.answer("push")
    until(lambda: not chat.waits, "the end of the question")
    shop.run("git fetch -q origin")  # answered after what came before
    assert git(remote, "for-each-ref") == before


@pytest.mark.long
def test_the_credentials_stay_on_the_host(
    open_shop: Open, person: Path, remote: Path, tmp_path: Path
) -> None:
    git(remote, "config", "http.receivepack", "true")
    helper = credential_helper(tmp_path / "helper")
    git(person, "config", "--file", str(person / ".gitconfig"), "credential.helper", str(helper))
    with http_remote(tmp_path) as address:
        shop = open_shop(f"{address}/shop.git", push="any")
        assert shop.run("git remote get-url origin").strip() == f"{address}/shop.git"
        shop.run("git fetch -q; git commit -q --allow-empty -m More; git push -q origin HEAD:main")
        looked = "env; ps axe; grep -rs planted-passwor[d] /home /workspace /run /tmp /etc || true"
        assert PASSWORD not in shop.run(looked)
    assert git(remote, "log", "-1", "--format=%s", "main") == "More"
    assert PASSWORD not in shop.deck.log.read_text() + str(shop.deck.history(shop.id))


ASK = """
import json, os, socket, subprocess
commit = subprocess.check_output(['git', 'rev-parse', 'HEAD'], text=True).strip()
body = json.dumps({'updates': [{'ref': os.environ['REF'], 'commit': commit}]})
request = f'''POST /v1/origin/shop/push HTTP/1.1
Host: x
Authorization: Bearer {os.environ['QD_ENGINE_SECRET']}
X-Workspace-Id: {os.environ['QD_WORKSPACE_ID']}
Content-Type: application/json
Content-Length: {len(body)}
Connection: close

{body}'''
with socket.socket(socket.AF_UNIX) as service:
    service.connect(os.environ['QD_URL'].removeprefix('unix:'))
    service.sendall(request.replace(chr(10), chr(13) + chr(10)).encode())
    print(service.recv(65536).decode())
"""


@pytest.mark.long
def test_only_those_inside_reach_the_source_this_way(open_shop: Open, remote: Path) -> None:
    shop = open_shop(str(remote), push="any")
    body = {"updates": [{"ref": "refs/heads/x", "commit": git(remote, "rev-parse", "main")}]}
    for method, path in (
        ("POST", "push"),
        ("POST", "git-upload-pack"),
        ("GET", "info/refs?service=git-upload-pack"),
        ("GET", "refs"),
    ):
        answer = shop.deck.ask(method, f"/v1/origin/shop/{path}", json=body)
        refused(answer, 401, "UNAUTHORIZED", "inside")
    for ref in ("HEAD", "refs/heads/a..b", "refs/qd/x"):
        status, said = tried(shop, f"REF='{ref}' python3 -c \"{ASK}\"")
        assert status == 0 and "409 Conflict" in said, said


FETCH = """
import json, os, select, socket, sys
head = f'''Host: x
Authorization: Bearer {os.environ['QD_ENGINE_SECRET']}
X-Workspace-Id: {os.environ['QD_WORKSPACE_ID']}
'''

def begin(method, path, body=b'', more=''):
    caller = socket.socket(socket.AF_UNIX)
    caller.connect(os.environ['QD_URL'].removeprefix('unix:'))
    request = f'{method} /v1/origin/shop/{path} HTTP/1.1{chr(10)}{head}{more}'
    request += f'Content-Length: {len(body)}{chr(10)}{chr(10)}'
    caller.sendall(request.replace(chr(10), chr(13) + chr(10)).encode() + body)
    return caller

def packet(text):
    return f'{len(text) + 4:04x}{text}'

want = packet('command=fetch') + '0001' + packet(f'want {sys.argv[1]}') + packet('done') + '0000'
more = f'Content-Type: application/x-git-upload-pack-request{chr(10)}Git-Protocol: version=2{chr(10)}'
wait = [begin('POST', 'git-upload-pack', want.encode(), more) for _ in range(6)]
begun = []

def until(count):
    while len(begun) < count:
        for one in select.select(wait, [], [])[0]:
            wait.remove(one)
            assert one.recv(12).endswith(b'200')
            begun.append(one)

until(4)
# This takes longer than a fetch to begin, and does not wait for one.
for _ in range(3):
    assert begin('GET', 'refs').recv(12).endswith(b'200')
assert not select.select(wait, [], [], 0)[0], 'more than four at a time'
begun.pop().close()
until(4)
for one in begun:
    one.close()
begun.clear()
until(1)
print('each had its turn')
"""


@pytest.mark.long
def test_few_fetches_of_a_replica_run_at_a_time(
    open_shop: Open, remote: Path, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    git(tmp_path, "clone", "-q", str(remote), str(theirs))
    (theirs / "large").write_bytes(os.urandom(8 << 20))  # more than fits into sockets and pipes
    git(theirs, "add", "large")
    head = commit(theirs, "more", "more")
    git(theirs, "push", "-q", "origin", "HEAD:main")
    shop = open_shop(str(remote))
    shop.run(f"cat > ../fetch.py <<'END'\n{FETCH}\nEND")
    shop.run(f"(python3 ../fetch.py {head} >said.txt 2>&1; echo ended-$? >> said.txt) & true")
    until(lambda: "ended-" in shop.run("cat said.txt"), "the end of the fetches")
    assert shop.run("cat said.txt") == "each had its turn\nended-0\n"
    shop.run("git fetch -q")


WAITING_GIT = """#!/bin/sh
case " $* " in *" pack-objects "*)
    gate=$(mktemp -u /workspace/began.XXXXXX); mkfifo $gate; read line < $gate; exit 1;;
esac
exec /usr/bin/git "$@"
"""


@pytest.mark.long
def test_few_pushes_of_a_replica_are_sent_at_a_time(open_shop: Open, remote: Path) -> None:
    shop = open_shop(str(remote), push="any")
    shop.run("git commit -q --allow-empty -m More; mkdir -p ~/.local/bin")
    shop.run(f"cat > ../push.py <<'END'\n{ASK}\nEND")
    shop.run(f"cat > ~/.local/bin/git <<'END'\n{WAITING_GIT}END\nchmod +x ~/.local/bin/git")
    for number in range(3):
        shop.run(f"(REF=refs/heads/b{number} python3 ../push.py > ../said.{number}) & true")
    gates = "ls ../began.* 2>/dev/null || true"
    until(lambda: len(shop.run(gates).split()) == 2, "the first two")
    shop.run("/usr/bin/git ls-remote -q origin")  # the third could have begun meanwhile
    first = shop.run(gates).split()[0]
    shop.run(f"echo > {first}; rm {first}")
    until(lambda: len(shop.run(gates).split()) == 2, "the third")
    for gate in shop.run(gates).split():
        shop.run(f"echo > {gate}")
    until(lambda: shop.run("cat ../said.*").count("HTTP/1.1 ") == 3, "the ends")


SPELLED = "https://shop.example/sea/shop.git"


@pytest.mark.long
def test_other_spellings_of_the_source_are_carried_too(
    open_shop: Open, person: Path, remote: Path
) -> None:
    # git of the person reaches the bare repository by that address.
    configuration = ("config", "--file", str(person / ".gitconfig"))
    git(person, *configuration, f"url.{remote}.insteadOf", SPELLED)
    shop = open_shop(SPELLED, push="any")
    shown = [f"origin\t{SPELLED} ({way})" for way in ("fetch", "push")]
    assert shop.run("git remote -v").splitlines() == shown
    assert shop.run("git remote get-url --push origin").strip() == SPELLED
    shop.run("git commit -q --allow-empty -m More")
    for number, address in enumerate(
        (SPELLED, "git@shop.example:sea/shop.git", "ssh://git@shop.example/sea/shop.git")
    ):
        shop.run(f"git push -q {address} HEAD:refs/heads/b{number}")
        assert git(remote, "log", "-1", "--format=%s", f"b{number}") == "More"
    for address in ("git@shop.example:sea/shop.git", "ssh://git@shop.example/sea/shop.git"):
        shop.run(f"git fetch -q {address} b0")
        assert "b0" in shop.run(f"git ls-remote {address}")
    shop.run("git fetch -q; git push -q origin HEAD")
    status, said = tried(shop, "git fetch git@shop.example:sea/shop.git.other")
    assert status != 0 and "b0" not in said, said


@pytest.mark.long
def test_a_replica_of_an_older_release_is_carried_once_it_wakes(
    open_shop: Open, remote: Path
) -> None:
    shop = open_shop(str(remote), push="any")
    unset = "git config --unset remote.origin"
    shop.run(f"{unset}.vcs; {unset}.qdRepository")
    assert tried(shop, "git fetch -q")[0] != 0
    shop.sleep()
    shop.deck.post(f"/v1/replica/{shop.id}/wake", status=202)
    shop.deck.reach(shop.id, "active")
    shop.run("git fetch -q; git commit -q --allow-empty -m More; git push -q origin HEAD:main")
    assert git(remote, "log", "-1", "--format=%s", "main") == "More"


@pytest.mark.long
@pytest.mark.parametrize(
    ("of_environment", "policy", "pushed"),
    [("never", "any", True), (None, None, False), ("any", "never", False)],
)
def test_an_automation_has_a_push_policy_of_its_own(
    git_deck: Installation,
    remote: Path,
    require_tool: Callable[[str], str],
    of_environment: str | None,
    policy: str | None,
    pushed: bool,
) -> None:
    require_tool("bwrap")
    given = {"push": of_environment} if of_environment else {}
    environment = git_deck.environment_with(git_deck.connect(str(remote)), **given)
    made = git_deck.qd(
        *("automation", "create", f"a-{policy}-{pushed}", "--environment", environment, "--json"),
        *("--prompt", block(PUSH.format("Run", "main")), "--webhook"),
        *(("--push", policy) if policy else ()),
    )
    assert made.returncode == 0, made.stderr
    path = f"/v1/automations/{json.loads(made.stdout)['automation']['id']}"
    run = f"{path}/executions/{git_deck.post(f'{path}/trigger', {})['execution_id']}"

    def ended() -> Any:
        found = git_deck.get(run)["execution"]
        return found if found["status"] in ("completed", "failed") else None

    workspace = until(ended, "the end of the run")["workspace_id"]
    assert (git(remote, "log", "-1", "--format=%s", "main") == "Run") is pushed
    git_deck.delete(workspace)


@pytest.mark.long
def test_commits_of_an_agent_name_the_co_author_of_its_environment(
    open_shop: Open, remote: Path
) -> None:
    shop = open_shop(str(remote), co_author="The Agent <agent@example.org>")
    chat = Chat(shop)

    def named() -> list[str]:
        names = "%s: %(trailers:key=Co-authored-by,valueonly,separator=%x2C)"
        return shop.run(f"git log -3 --format='{names}'").splitlines()

    def agent_runs(script: str) -> None:
        chat.pushes += 1
        shop.deck.send(shop.id, block(script))
        chat.ended()

    shop.run("echo mine > mine; git add .; git commit -qm Mine")
    agent_runs(
        "echo theirs > theirs; git add .; git commit -qm Theirs; git commit -q --amend -m Its"
    )
    theirs = "Its: The Agent <agent@example.org>"
    assert named()[:2] == [theirs, "Mine: "]
    agent_runs("git rebase -q --force-rebase HEAD~2; echo more > more")
    assert named()[:2] == [theirs, "Mine: "]
    shop.deck.post(f"{shop.path}/shop/commit", {"message": "Left over"})
    assert named()[:2] == ["Left over: The Agent <agent@example.org>", theirs]


def test_a_co_author_has_a_name_and_an_address(git_deck: Installation) -> None:
    for wrong in ("Agent", "<agent@example.org>", "A <a@b> <c@d>", "A\nB <a@b>", "A <a b>"):
        body = {"name": "wrong", "co_author": wrong}
        answer = git_deck.ask("POST", "/v1/environments", json=body)
        assert answer.status_code == 400, (wrong, answer.text)
