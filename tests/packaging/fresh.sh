#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A newcomer's first hour, in a fresh minimal Debian 12: what script/bootstrap installs, the start of script/test after that of script/demo,
# and CONTRIBUTING's first commands. First in PATH are a Python and other tools that fail: only the system's may be used. Groups that
# nothing here builds with are not installed, but apt says whether it could. Needs root, and the package mirror of this machine.
#   fresh.sh TREE           a few of script/test's tests
#   fresh.sh TREE --whole   script/demo and script/test as they are, and nothing more: half an hour
set -euo pipefail
cd "$1"
. packaging/common.sh
((EUID == 0)) && unshare --mount true 2>/dev/null || { echo "no root can be made here"; exit 77; }
base=build/package/debian.tar
debian_root "$base"
scratch=$(mktemp -d "$PWD/build/package/fresh.XXXXXX")
trap 'rm -rf --one-file-system "$scratch"' EXIT
root=$scratch/root
mkdir "$root"
tar --extract --file="$base" --directory="$root"
mkdir "$root/freehold" "$root/ccache"
git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- --ignore-failed-read 2>/dev/null | tar --extract --directory="$root/freehold"
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/fresh" # nothing of it outlives the test
# How this machine reaches mirrors.
apt-config dump Acquire | grep '"' >"$root/etc/apt/apt.conf.d/machine"
cp /etc/resolv.conf "$root/etc"
cp /etc/ssl/certs/ca-certificates.crt "$root/machine.crt" # the root's own come with a package
# What compiles longer than a test may: script/bootstrap has built it here.
mkdir -p "$root/root/.cache/freehold/arm64" "$root/root/.cache/freehold/arm64_programs"
cp "${XDG_CACHE_HOME:-$HOME/.cache}"/freehold/{vale,actionlint}-* "$root/root/.cache/freehold" 2>/dev/null || true
for tool in python python3 pip pip3 go vale node; do
  printf '#!/bin/sh\necho "$0 $*: a tool that PATH happens to have" >&2\nexit 9\n' >"$root/usr/local/bin/$tool"
  chmod +x "$root/usr/local/bin/$tool"
done

if [[ ${2-} == --whole ]]; then
  echo 'cd /freehold && time script/demo && time script/test' >"$root/first_hour"
else
  cat >"$root/first_hour" <<'END'
set -euo pipefail
cd /freehold
trap 'echo "line $LINENO of the first hour failed: $BASH_COMMAND" >&2' ERR
# build PRESET TARGET...
build() {
  cmake --preset "$1" >/dev/null
  cmake --build --preset "$1" -j "$(nproc)" --target "${@:2}" -- --quiet
}
# passes PRESET TESTS: of the quick ones.
passes() { ctest --preset "$1" -R "$2" -LE "^(slow|soak)$" -j 4; }

echo "= script/demo, up to its library"
script/bootstrap demo
build release freehold_malloc_shared
echo "= script/test: says within two minutes how far it is"
script/bootstrap
timeout 120 script/test >/tmp/start 2>&1 || true
grep --quiet '^=== bootstrap: ' /tmp/start
grep --quiet --extended-regexp '^\[[0-9]+ of [0-9]+, [0-9.]+ s\]$|^=== build release: ' /tmp/start || { cat /tmp/start; exit 1; }
echo "= a few of its tests"
build release misuse_pool_memcheck_program misuse_heap_memcheck_program misuse_malloc_program linking_static consumers_startup freehold_command cli_run
passes release '^release\.(lint\.(layers|tables|figures)|misuse\..*memcheck|linking\.(static|exports)$|real\.(perl|git|redis)$|cli\.run$|consumers\.startup)'
echo "= CONTRIBUTING's first commands"
build dev unit_base unit_os
passes dev '^dev\.unit\.(base|os)$'
echo "= the documentation site's group"
script/bootstrap docs
echo "= what every other group would install"
mkdir /simulated
printf '#!/bin/sh\ncase " $* " in *" install "*) exec /usr/bin/apt-get -s "$@" ;; esac\n' >/simulated/apt-get
chmod +x /simulated/apt-get
groups=$(sed -n 's/^groups="\(.*\)"$/\1/p' script/bootstrap)
for group in $groups all; do
  case $group in
    arm64 | arm64_programs) eval "$(sed -n "/^${group}_root=(/,/^)/p" script/bootstrap)"; declare -n list=${group}_root; echo "${list[*]}" >~/.cache/freehold/$group/.packages ;;
    prose | all) [[ $(echo ~/.cache/freehold/vale-*) != *'*' ]] || continue ;;
  esac
  PATH=/simulated:$PATH script/bootstrap "$group" >/dev/null
done
END
fi
unshare --mount --pid --fork bash -c '
  mount --make-rprivate /
  mount -t proc proc "$1/proc"
  mount --rbind /dev "$1/dev"
  mount -t tmpfs tmpfs "$1/tmp"
  mount --bind "$2" "$1/ccache"
  exec chroot "$1" env HOME=/root {PIP_CERT,REQUESTS_CA_BUNDLE,SSL_CERT_FILE}=/machine.crt XDG_CACHE_HOME= CCACHE_DIR=/ccache PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash /first_hour' _ "$root" "$(ccache --get-config cache_dir)"
