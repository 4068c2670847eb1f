# SPDX-License-Identifier: MIT
"""Threads that build, parse, compress and hash; prints what does not depend on their order."""
import hashlib
import json
import threading
import zlib

results = [None] * 8


def work(n):
    digest = hashlib.sha256()
    kept = {}
    for i in range(120):
        data = {f"key{j}": [n, i, j, "x" * (j * 7 % 300)] for j in range(80)}
        text = json.dumps(data)
        packed = zlib.compress(text.encode(), 3)
        if json.loads(zlib.decompress(packed)) != data:
            raise SystemExit("corrupted")
        digest.update(packed)
        kept[i % 17] = text[: 5000 + i]
    results[n] = digest.hexdigest() + str(sum(map(len, kept.values())))


threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("\n".join(results))
