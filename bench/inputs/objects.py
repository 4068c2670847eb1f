# SPDX-License-Identifier: MIT
"""Input of the "python" row: strings, tuples, dicts and lists above the interpreter's own small-object limit, and below it."""


def build(n):
    table = {}
    for i in range(n):
        table[f"key-{i}" * 30] = [i, str(i) * 150, (i, [i] * (i % 90))]
    return table


def main():
    kept = []
    total = 0
    for generation in range(24):
        table = build(6000)
        total += sum(len(v[1]) for v in table.values())
        kept.append({k: v for k, v in table.items() if v[0] % 5 == generation % 5})
        if len(kept) > 4:
            kept.pop(0)
    print(total)


main()
