#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# script/release refuses what a user can mend by one line and exit code 2, and leaves the clone as it was: commits, tags, build/.
#   release.sh TREE
set -euo pipefail
tree=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# clone_in FOLDER: a small clone with this tree's script, and the files that it changes. Its last word on standard error, that the
# packages' tools are wanted, is the sign that nothing was refused.
clone_in() {
  mkdir -p "$1/script"
  (cd "$tree" && cp -r --parents script/release packaging CHANGELOG.md CMakeLists.txt "$1")
  printf '#!/bin/sh\necho "not refused" >&2\nexit 9\n' >"$1/script/bootstrap"
  chmod +x "$1/script/bootstrap"
  printf '/build/\n/below/\n' >"$1/.gitignore"
  cd "$1"
  sed -i 's|HOMEPAGE_URL "[^"]*"|HOMEPAGE_URL "https://freehold.example"|' CMakeLists.txt
  git init --quiet --initial-branch=main
  git config user.name test
  git config user.email test@example.org
  git add --all
  git commit --quiet --message "all"
}
state() { git for-each-ref && git status --porcelain && { find build 2>/dev/null || true; }; }
# ends STATUS WORDS...: script/release with the words ends so, by one line.
ends() {
  local expected=$1 status=0 before said
  shift
  before=$(state)
  said=$(script/release "$@" 2>&1 </dev/null) || status=$?
  if [[ $status != "$expected" || $(wc -l <<<"$said") != 1 || $(grep -vxE 'build(/package)?' <<<"$(state)") != $(grep -vxE 'build(/package)?' <<<"$before") ]]; then
    printf 'script/release %s: exit code %s: %s\n' "$*" "$status" "$said"
    failures=$((failures + 1))
  fi
}

# What only makes the crate.
mkdir "$scratch/bin"
printf '#!/bin/sh\necho cargo 99.0.0\n' >"$scratch/bin/cargo"
chmod +x "$scratch/bin/cargo"
PATH=$scratch/bin:$PATH
export DEBEMAIL=maintainer@freehold.example

clone_in "$scratch/clone"
version=$(sed -n 's/^  VERSION \([0-9.]*\)$/\1/p' CMakeLists.txt)
ends 9 --dry-run 90.0.0
ends 9 90.0.0
ends 2
ends 2 --no-such-option 90.0.0
ends 2 --dry-run
ends 2 --dry-run 90.0.0 91.0.0
ends 2 --check-reproducible 90.0.0
ends 2 --check-reproducible deb nosuch
for wrong in one.two 90.0 90.0.0.0 v90.0.0 090.0.0 90.0.0-rc1 '90.0.0 ' 0.0.1; do
  ends 2 "$wrong"
  ends 2 --dry-run "$wrong"
done

# Not the tag's commit, or no tag; the version of a tag; changes in the tree; nothing to tell.
ends 2 --tagged 90.0.0
ends 2 --tagged "$version"
git tag v90.0.0
ends 2 --dry-run 90.0.0
ends 2 90.0.0
ends 2 --tagged 90.0.0 # CMakeLists.txt has another version
git tag --delete v90.0.0 >/dev/null
git tag "v$version"
ends 9 --tagged "$version"
touch new
ends 2 --dry-run 90.0.0
ends 2 90.0.0
ends 2 --tagged "$version"
ends 2 --check-reproducible
rm new
sed -i '/^## \[Unreleased\]/,/^## \[/{/^## /!d}' CHANGELOG.md
git commit --quiet --all --message "nothing is new"
ends 2 --dry-run 90.0.0
git reset --quiet --hard HEAD~1

# No address of the project, or of who maintains Debian's packages, which every package shows: enough for a try.
DEBEMAIL='' ends 2 90.0.0
DEBEMAIL='' ends 9 --dry-run 90.0.0
sed -i 's|HOMEPAGE_URL "[^"]*"|HOMEPAGE_URL ""|' CMakeLists.txt
git commit --quiet --all --message "no address"
ends 2 90.0.0
ends 9 --dry-run 90.0.0
git tag --force "v$version" >/dev/null
ends 2 --tagged "$version"
git reset --quiet --hard HEAD~1

# No cargo that is new enough, where there is a crate.
sed -i s/99/0/ "$scratch/bin/cargo"
[[ ! -f packaging/rust/common.sh ]] || ends 2 --dry-run 90.0.0
sed -i s/0.0.0/99.0.0/ "$scratch/bin/cargo"

# No git clone, but a tarball within one.
mkdir below
git archive HEAD | tar --extract --directory=below
(cd below && ends 2 --dry-run 90.0.0 && exit "$failures") || failures=$((failures + 1))

# A disk with too little room.
mkdir "$scratch/small"
if unshare --map-root-user --mount true 2>/dev/null; then
  export -f clone_in state ends
  export tree failures
  unshare --map-root-user --mount bash -euo pipefail -c 'mount -t tmpfs -o size=20m tmpfs "$1"; clone_in "$1/clone"; ends 2 --dry-run 90.0.0; exit $failures' _ "$scratch/small" ||
    failures=$((failures + 1))
fi
exit $((failures != 0))
