# SPDX-License-Identifier: MIT
# For the scripts in packaging/: sourced from the root of the tree. Sets $version, that of CMakeLists.txt.
version=$(sed -n 's/^  VERSION \([0-9.]*\)$/\1/p' CMakeLists.txt)
# The project's address, empty while it has none; every package takes it from CMakeLists.txt.
homepage=$(sed -n 's/^  HOMEPAGE_URL "\([^"]*\)".*/\1/p' CMakeLists.txt)
jobs=$(nproc)

# refuse TEXT: bad arguments, or something that the user can mend.
refuse() {
  echo "${0#"$PWD"/}: $1" >&2
  exit 2
}

# set_time: SOURCE_DATE_EPOCH is the time in a package: that of the last commit by default, or of a release's tarball.
set_time() {
  if [[ -e .git ]]; then
    : "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
  else
    : "${SOURCE_DATE_EPOCH:=$(stat -c %Y CHANGELOG.md)}"
  fi
  export SOURCE_DATE_EPOCH
}

# without_paths FOLDER: fails if a file below it names this tree's folder.
without_paths() {
  local found
  found=$(grep --recursive --files-with-matches --fixed-strings -- "$PWD" "$1") || return 0
  echo "${0#"$PWD"/}: has the path of this tree inside: $found" >&2
  return 1
}

# open_scratch_file VARIABLE: a descriptor of a file without a name, so that nothing is left of it whatever ends the script. It is read
# from the beginning by /dev/fd.
open_scratch_file() {
  local file
  file=$(mktemp)
  exec {fd}<>"$file"
  rm -f "$file"
  printf -v "$1" %s "$fd"
}

# quietly COMMAND...: silent unless it fails.
quietly() {
  local log status=0
  open_scratch_file log
  "$@" >&"$log" 2>&1 || status=$?
  ((status == 0)) || cat "/dev/fd/$log" >&2
  exec {log}>&-
  return "$status"
}

free_mib() { df --output=avail --block-size=M "$1" | tr -dc 0-9; }

# guarded NAME COMMAND...: runs it in a shell of its own that an error ends, and sets $status. Its errors come at its end; after Ctrl-C (130), or on
# a full disk (2, and $full is set), one line comes in their place. Before `||` or after `if` the shell would go on after an error.
guarded() {
  local name=$1 errors interrupted='' fullest=build
  shift
  full=
  open_scratch_file errors
  trap 'interrupted=1' INT
  set +e
  (
    set -e
    "$@"
  ) 2>&"$errors"
  status=$?
  set -e
  trap - INT
  [[ -d build ]] && (($(free_mib build) <= $(free_mib "${TMPDIR:-/tmp}"))) || fullest=${TMPDIR:-/tmp}
  if [[ $interrupted ]] || ((status == 130)); then
    echo "$name: interrupted" >&2
    status=130
  elif ((status != 0)) && { (($(free_mib "$fullest") < 16)) || grep --quiet -e 'No space left on device' -e ' is full$' "/dev/fd/$errors"; }; then
    echo "$name: the disk with ${fullest/#build/build/} is full" >&2
    status=2
    full=1
  else
    cat "/dev/fd/$errors" >&2
  fi
  exec {errors}>&-
}

# remove PATH...: also while programs that Ctrl-C ends still write there.
remove() {
  local tries
  for ((tries = 0; tries < 50; ++tries)); do
    rm -rf "$@" 2>/dev/null && return
    sleep 0.1
  done
  rm -rf "$@"
}

# python_environment FOLDER REQUIREMENTS: a virtual environment with what the file lists, kept until the list changes.
python_environment() {
  local stamp=$1/requirements.txt
  cmp -s "$2" "$stamp" && return
  /usr/bin/python3 -c 'import ensurepip' 2>/dev/null || script/bootstrap packages
  quietly /usr/bin/python3 -m venv --clear "$1"
  quietly "$1/bin/pip" install --quiet --disable-pip-version-check --requirement "$2"
  cp "$2" "$stamp"
}

# debian_lists FILE: the lists of Debian's packages that apt has on this machine, not those of others, as apt reads them.
debian_lists() {
  apt-get indextargets --format 'deb $(REPO_URI) $(CODENAME) $(COMPONENT) $(ORIGIN) $(CREATED_BY)' | sed -n 's/ Debian Packages$//p' | sort -u >"$1"
  [[ -s $1 ]] || refuse "apt knows no lists of Debian's packages; apt-get update gets them"
}

# debian_root FILE: a minimal Debian 12 as an archive, made by mmdebstrap and kept for a day.
debian_root() {
  [[ -z $(find "$1" -mtime -1 2>/dev/null) ]] || return 0
  mkdir -p "${1%/*}"
  debian_lists "$1.list"
  mmdebstrap --quiet --variant=minbase bookworm "$1.new.tar" "$1.list"
  rm "$1.list"
  mv "$1.new.tar" "$1"
}
