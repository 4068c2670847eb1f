# SPDX-License-Identifier: MIT
# Python threads, or processes.
#   compute    arithmetic: one thread runs at a time, because of the interpreter's lock
#   objects    lists and dictionaries of strings, much allocated: under the same lock
#   hash       hashlib over large buffers, which releases the lock
#   processes  multiprocessing: each has its own interpreter
# The interpreter's lock is the program's own, as far as malloc is concerned. CPython waits for it with a condition variable,
# so "too little at the same time" is right, too.
import hashlib
import multiprocessing
import sys
import threading


def compute(rounds):
    value = 1
    for i in range(rounds):
        value = (value * 1103515245 + i) & 0xFFFFFFFF
    return value


def objects(rounds):
    for _ in range(rounds):
        table = {f"the name of entry {i}": [i, str(i)] for i in range(500)}
        if len(table) != 500:
            raise SystemExit(1)


def hashes(rounds):
    buffer = bytes(8 << 20)
    for _ in range(rounds):
        hashlib.sha256(buffer).digest()


def main():
    mode, workers, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    work = {"compute": compute, "objects": objects, "hash": hashes, "processes": compute}[mode]
    kind = multiprocessing.Process if mode == "processes" else threading.Thread
    running = [kind(target=work, args=(size // workers,)) for _ in range(workers)]
    for worker in running:
        worker.start()
    for worker in running:
        worker.join()
    print(mode, workers, size)


if __name__ == "__main__":
    main()
