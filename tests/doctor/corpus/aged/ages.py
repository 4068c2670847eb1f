# SPDX-License-Identifier: MIT
"""A load that leaves holes, and work beside it, in CPython: `python3 ages.py load|work|both`, with PYTHONMALLOC=malloc."""
import os
import random
import sys
import time


def load():
    kept = [f"record {i} " + "x" * random.randrange(120) for i in range(200000)]
    random.shuffle(kept)
    del kept[60000:]
    return kept


def work():
    total = 0
    for _ in range(6):
        table = {i: [f"{i}", i * 1.5] for i in range(60000)}
        total += sum(len(name) for name, _ in table.values())
    return total


random.seed(1)
kept = load() if sys.argv[1] != "work" else []
if sys.argv[1] != "load":
    random.seed(2)
    began = time.process_time()
    work()
    print(f"seconds {time.process_time() - began:.6f}")
sys.stdout.flush()
os._exit(0)
