#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the malloc takes from elsewhere is on the list, as a shared library or as archives, and the list has nothing else.
#   imports.sh LIST LIBRARY LINKER ARCHIVE...
set -euo pipefail
list=$1 library=$2 linker=$3
shift 3
allowed=$(sed 's/#.*//' "$list" | tr -s ' ' '\n' | sed '/^$/d' | sort -u)
# What a program with these archives would take of them, and what it would take from elsewhere.
program=$(mktemp)
trap 'rm -f "$program"' EXIT
"$linker" -r -o "$program" -u malloc -u freehold_is_active -u freehold_refuse_sanitizers -u _Znwm --start-group "$@" --end-group
undefined() { nm "$@" --undefined-only --format=posix | sed 's/[@ ].*//' | sort -u; }
taken=$(undefined --dynamic "$library")
wrong=$(comm -13 <(echo "$allowed") <(printf '%s\n' "$taken" "$(undefined "$program")" | sort -u))
[[ -z $wrong ]] || { echo "not on the list of $list:" $wrong; exit 1; }
