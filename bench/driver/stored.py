"""`script/bench docs`: writes the tables of docs/benchmarks.md, docs/heaps.md, docs/articles.md and README.md from the runs stored in docs/benchmarks, or runs again."""

import argparse
import json
import pathlib
import subprocess
import sys

from . import again, articles_table, floors_table, heaps_table, latency_table, machine, peers, report, stats

ROOT = pathlib.Path(__file__).resolve().parents[2]
STORE = ROOT / "docs" / "benchmarks"
NAMES = {"glibc": "glibc", "gperftools": "gperftools", "jemalloc": "jemalloc", "mimalloc2": "mimalloc", "mimalloc3": "mimalloc",
         "onetbb": "oneTBB", "rpmalloc": "rpmalloc", "snmalloc": "snmalloc", "tcmalloc": "google/tcmalloc"}


def dumps(data):
    """One line for each row under each malloc: a diff shows what changed, and the file stays small."""
    if "rows" not in data:
        return json.dumps(data, indent=1) + "\n"
    head = {key: value for key, value in data.items() if key != "rows"}
    rows = []
    for name, about in data["rows"].items():
        runs = ",\n".join(f"   {json.dumps(a)}: {json.dumps(r)}" for a, r in about["runs"].items())
        rest = "".join(f"{json.dumps(key)}: {json.dumps(value)}, " for key, value in about.items() if key != "runs")
        rows.append(f"  {json.dumps(name)}: {{{rest}\"runs\": {{\n{runs}\n  }}}}")
    return json.dumps(head, indent=1)[:-2] + ',\n "rows": {\n' + ",\n".join(rows) + "\n }\n}\n"


def between_marks(text, name, content):
    """`text` with `content` between the marks of that name. Pre: both marks are there, once."""
    begin, end = f"<!-- begin {name}: written by script/bench docs -->\n", f"<!-- end {name} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed or begin in after:
        raise SystemExit(f"the marks '{begin.strip()}' and '{end}' must stand in the text, once")
    return f"{before}{begin}{content}\n{end}{after}"


def malloc_tables(path):
    machines, results = again.read([path])
    return "```\n" + "\n".join(machines) + "\n\n" + report.render(*results, peers.OURS).rstrip() + "\n```"


def readme_table(path):
    """Ours against each peer, as Markdown."""
    _, (matrix, _, allocators, _) = again.read([path])
    each = stats.against_each(report.usable_cells(matrix), peers.OURS)
    shown = [a for a in allocators if a.name in each]
    names = [f"{NAMES.get(a.name, a.name)} {a.version}" for a in shown]
    lines = [f"| geometric mean of Freehold against | {' | '.join(names)} |", "|---" * (len(shown) + 1) + "|"]
    for index, what in ((report.TIME, "time"), (report.PEAK, "peak memory")):
        lines.append(f"| {what} | {' | '.join(f'{each[a.name][index]:.2f}' for a in shown)} |")
    compared = report.comparisons(matrix, peers.OURS)
    total = stats.summarise(compared)
    first, second, *_, last = [f"`{c.row}` ({c.time_ratio:.2f})" for c in compared]
    lines += ["", "No one malloc wins every row. Against the best peer *of each row*, over "
              f"{len(compared)} rows, Freehold's time is {total.time:.2f}, its peak memory {total.memory:.2f}:",
              f"it loses most in {first} and {second}, and wins most in {last}."]
    return "\n".join(lines)


def latency_tables(path):
    data = json.loads(path.read_text())
    return "```\n" + machine.one_line(data["machine"]) + "\n\n" + latency_table.render(data).rstrip() + "\n```"


def floors_table_of(path):
    data = json.loads(path.read_text())
    return "```\n" + machine.one_line(data["machine"]) + "\n\n" + floors_table.render(data) + "\n```"


def heap_tables(path):
    data = json.loads(path.read_text())
    return "```\n" + machine.one_line(data["machine"]) + "\n\n" + heaps_table.render(data) + "\n```"


def articles_head(path):
    return articles_table.head(json.loads(path.read_text()))


def article_tables(article):
    return lambda path: articles_table.of_article(json.loads(path.read_text()), article)


WRITTEN = [  # (text, mark, stored run, how it is shown)
    (ROOT / "docs" / "benchmarks.md", "malloc", STORE / "malloc.json", malloc_tables),
    (ROOT / "README.md", "malloc", STORE / "malloc.json", readme_table),
    (ROOT / "docs" / "benchmarks.md", "floors", STORE / "floors.json", floors_table_of),
    (ROOT / "docs" / "benchmarks.md", "latency", STORE / "latency.json", latency_tables),
    (ROOT / "docs" / "heaps.md", "heaps", STORE / "heaps.json", heap_tables),
    (ROOT / "docs" / "articles.md", "articles", STORE / "articles.json", articles_head),
    *((ROOT / "docs" / "articles.md", f"article {n}", STORE / "articles.json", article_tables(n)) for n in range(1, 6)),
]


def write_tables():
    for text, mark, run, show in WRITTEN:
        if run.exists():
            text.write_text(between_marks(text.read_text(), mark, show(run)))


def keep(name, data):
    STORE.mkdir(exist_ok=True)
    (STORE / f"{name}.json").write_text(dumps(data))
    write_tables()


def run_all():
    """Each in a process of its own, so that none is measured beside what the one before left behind."""
    for command in (["malloc", "--rounds", "3"], ["latency"], ["floors"], ["heaps"]):
        if subprocess.run([ROOT / "script" / "bench", *command, "--docs"], check=False).returncode != 0:
            print(f"script/bench {' '.join(command)} failed: docs/benchmarks holds its last good run", file=sys.stderr)
            return 1
    return 0


def main(arguments):
    parser = argparse.ArgumentParser(prog="script/bench docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a table is not that of the stored run")
    parser.add_argument("--run", action="store_true", help="measure everything first: malloc, latency, floors and heaps, about fifteen minutes")
    options = parser.parse_args(arguments)
    if options.run and options.check:
        parser.error("--run measures and writes, --check writes nothing: choose one")
    if options.run:
        return run_all()
    if not options.check:
        write_tables()
        return 0
    stale = [f"{text.relative_to(ROOT)}: {mark}" for text, mark, run, show in WRITTEN
             if run.exists() and between_marks(text.read_text(), mark, show(run)) != text.read_text()]
    for one in stale:
        print(f"not of the stored run: {one}; script/bench docs writes it again")
    return 1 if stale else 0
