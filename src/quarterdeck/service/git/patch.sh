# Print the changes of the checkout in the current directory as a patch that `git apply` takes.
#
# patch.sh AGAINST BRANCH BASE [PATHSPEC...]
#   AGAINST  base, head, uncommitted or checkpoint
#   BRANCH   the base branch
#   BASE     the commit that the checkout started from, may be empty; or that of the checkpoint
#
# A shell script, because starting the interpreter takes longer than all of these commands.

against=$1 branch=$2 base=$3
shift 3
export GIT_OPTIONAL_LOCKS=0 GIT_PAGER=cat LC_ALL=C
git() {
    command git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c 'safe.directory=*' "$@"
}

# As `base_of` of the engine: the newest commit of the base branch, but none before BASE.
if [ "$against" = uncommitted ]; then
    base=HEAD
elif [ "$against" != checkpoint ] && shared=$(git merge-base HEAD "refs/remotes/origin/$branch" 2>/dev/null); then
    if [ -z "$base" ] || [ "$base" = "$shared" ] || git merge-base --is-ancestor "$base" "$shared" 2>/dev/null; then
        base=$shared
    fi
fi
base=${base:-$(git hash-object -t tree /dev/null)}

set -- -- "$@"
if [ "$against" = head ]; then
    set -- HEAD "$@"
else
    # A copy of the index: git writes it, and compares only files that it names. The copy is to name the new ones too.
    # Its time is kept: a file of the same second is compared by its content.
    new=$(git ls-files --others --unmerged --exclude-standard "$@" | head -n 1)
    places=$(git rev-parse --path-format=absolute --git-path index --git-path objects) || exit
    { read -r index; read -r objects; } <<END
$places
END
    aside=$(mktemp -d "${TMPDIR:-/tmp}/qd-index-XXXXXX") || exit
    trap 'rm -rf "$aside"' EXIT
    trap 'exit 1' HUP INT PIPE TERM
    if [ -e "$index" ]; then cp -p "$index" "$aside/index" || exit; fi
    export GIT_INDEX_FILE="$aside/index" GIT_OBJECT_DIRECTORY="$aside"
    export GIT_ALTERNATE_OBJECT_DIRECTORIES="$objects${GIT_ALTERNATE_OBJECT_DIRECTORIES:+:$GIT_ALTERNATE_OBJECT_DIRECTORIES}"
    if [ -n "$new" ]; then git add --intent-to-add -- . || exit; fi
fi
git diff --no-color --no-ext-diff --no-textconv -M --binary --full-index "$base" "$@"
