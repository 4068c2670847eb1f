# SPDX-License-Identifier: MIT
"""Dispatches `script/bench WHAT …`."""

import sys

from . import again, counts, floors, heaps, instructions, latency, malloc, mimalloc_bench, mspace, pools, processes, service, startup, stored

COMMANDS = {"malloc": malloc.main, "latency": latency.main, "floors": floors.main, "pools": pools.main, "heaps": heaps.main, "processes": processes.main,
            "instructions": instructions.main, "counts": counts.main, "service": service.main, "startup": startup.main, "mspace": mspace.main, "mimalloc-bench": mimalloc_bench.main, "report": again.main,
            "docs": stored.main}


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        names = "\n".join(f"  {name:13} {command.__globals__['__doc__'].splitlines()[0]}" for name, command in COMMANDS.items())
        print(f"usage: script/bench WHAT [--help]\n{names}", file=sys.stderr)
        return 2
    return COMMANDS[sys.argv[1]](sys.argv[2:])


sys.exit(main())
