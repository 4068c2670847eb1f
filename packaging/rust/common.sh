# SPDX-License-Identifier: MIT
# For build and test beside it.
oldest_cargo=1.65.0 # of the crate `cc`

# A cargo that is new enough, or one line.
find_cargo() {
  local found
  found=$(cargo --version 2>/dev/null | cut -d' ' -f2) || true
  [[ $found ]] || refuse "cargo is not there: script/bootstrap crates, or rustup"
  [[ $(printf '%s\n' "$oldest_cargo" "$found" | sort -V | head -n 1) == "$oldest_cargo" ]] ||
    refuse "cargo $found is older than $oldest_cargo: rustup has a newer one, as has Debian 12 in cargo-web"
}
