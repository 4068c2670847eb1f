# SPDX-License-Identifier: MIT
# For the scripts in packaging/: sourced from the root of the tree. Sets $version, that of CMakeLists.txt.
version=$(sed -n 's/^  VERSION \([0-9.]*\)$/\1/p' CMakeLists.txt)
jobs=$(nproc)

# refuse TEXT: bad arguments, or something that the user can mend.
refuse() {
  echo "${0#"$PWD"/}: $1" >&2
  exit 2
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
