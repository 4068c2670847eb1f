#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The library has the probe points of OpenTelemetry's memory profiler: one place each, with as many values as the contract says.
# The instruction there is a nop, so that nothing happens while nobody listens.
#   probes.sh LIBRARY
set -euo pipefail
notes=$(readelf --notes --wide "$1")
for probe in alloc:3 free:1; do
  name=${probe%:*} values=${probe#*:}
  note=$(grep -A3 'Provider: otel_memory' <<<"$notes" | grep -A2 "Name: $name$") || { echo "$1: there is no otel_memory:$name"; exit 1; }
  [[ $(grep -c Location <<<"$note") = 1 ]] || { echo "$1: otel_memory:$name is in several places"; exit 1; }
  arguments=$(sed -n 's/^ *Arguments: //p' <<<"$note")
  [[ $arguments =~ ^8@%?[a-z0-9]+(\ 8@%?[a-z0-9]+){$((values - 1))}$ ]] || { echo "$1: otel_memory:$name has '$arguments'"; exit 1; }
  place=$(sed -n 's/^ *Location: \(0x[0-9a-f]*\).*/\1/p' <<<"$note")
  code=$(objdump --disassemble --start-address="$place" --stop-address=$((place + 4)) "$1" | sed -n '/>:$/,$p')
  grep -Eq '\snop\s*$' <<<"$(sed -n 2p <<<"$code")" || { echo "$1: no nop at otel_memory:$name: $code"; exit 1; }
done
echo "otel_memory:alloc and otel_memory:free are there, a nop each"
