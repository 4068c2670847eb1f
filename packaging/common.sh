# SPDX-License-Identifier: MIT
# For the scripts in packaging/: sourced from the root of the tree. Sets $version, that of CMakeLists.txt.
version=$(sed -n 's/^  VERSION \([0-9.]*\)$/\1/p' CMakeLists.txt)
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

# quietly COMMAND...: silent unless it fails.
quietly() {
  local log status=0
  log=$(mktemp)
  "$@" &>"$log" || status=$?
  ((status == 0)) || cat "$log" >&2
  rm -f "$log"
  return "$status"
}

# python_environment FOLDER REQUIREMENTS: a virtual environment with what the file lists, kept until the list changes.
python_environment() {
  local stamp=$1/requirements.txt
  cmp -s "$2" "$stamp" && return
  python3 -c 'import ensurepip' 2>/dev/null || script/bootstrap packages
  quietly python3 -m venv --clear "$1"
  quietly "$1/bin/pip" install --quiet --disable-pip-version-check --requirement "$2"
  cp "$2" "$stamp"
}
