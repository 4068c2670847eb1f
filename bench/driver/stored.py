# SPDX-License-Identifier: MIT
"""`script/bench docs`: writes the tables of README.md and of docs from the runs stored in docs/benchmarks, or runs again."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from . import again, articles_table, charts, command_tables, heaps_table, latency_table, machine, mimalloc_bench_table, peers, report, service_table, stats
from .pools import built_command

ROOT = pathlib.Path(__file__).resolve().parents[2]
STORE = ROOT / "docs" / "benchmarks"


def in_lines(value, depth=1):
    """One line for each element of a list, and for each entry of `rows`: a diff shows what changed, and the file stays small."""
    if not value or depth > 1 and not isinstance(value, list):
        return json.dumps(value)
    if isinstance(value, list):
        return "[\n" + ",\n".join(f"  {json.dumps(one)}" for one in value) + "\n ]"
    return "{\n" + ",\n".join(f"{' ' * depth}{json.dumps(key)}: {in_lines(one, 1 if key == 'rows' else depth + 1)}" for key, one in value.items()) + "\n}"


def dumps(data):
    return in_lines(data) + "\n"


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
    return "```\n" + "\n".join(machines) + "\n\n" + report.render(*results, peers.OURS, figures=False).rstrip() + "\n```"


def readme_table(path):
    """Ours against the best peer of each row and against each peer, with the rows where we lose and win most, as Markdown."""
    machines, (matrix, _, allocators, _) = again.read([path])
    cells = report.usable_cells(matrix)
    compared = report.comparisons(matrix, peers.OURS)
    total, worst, best = stats.summarise(compared), compared[0], compared[-1]

    def row_ratio(row, ratio):
        return f"`{row}` {ratio:.2f}"

    lines = ["| Freehold divided by | time | peak memory | Freehold's worst row (time) | its best row (time) |", "|---" * 5 + "|",
             f"| the best of the others, row by row | {total.time:.2f} | {total.memory:.2f} | {row_ratio(worst.row, worst.time_ratio)} | {row_ratio(best.row, best.time_ratio)} |"]
    each = stats.against_each(cells, peers.OURS)
    for peer in allocators:
        if peer.name not in each:
            continue
        ratios = {row: c[peers.OURS][report.TIME] / c[peer.name][report.TIME] for row, c in cells.items() if peers.OURS in c and peer.name in c}
        lost, won = max(ratios, key=ratios.get), min(ratios, key=ratios.get)
        time, memory, _ = each[peer.name]
        lines.append(f"| {command_tables.NAMES.get(peer.name, peer.name)} {peer.version} | {time:.2f} | {memory:.2f} | {row_ratio(lost, ratios[lost])} | {row_ratio(won, ratios[won])} |")
    slower = sum(c.time_ratio > report.TIE for c in compared)
    lines += ["", f"No malloc is the fastest on every row. On {slower} of {len(compared)} rows another malloc is faster than Freehold. "
              f"The worst row is `{worst.row}`: Freehold takes {worst.time_ratio:.2f} times the time of {command_tables.NAMES.get(worst.fastest, worst.fastest)}.",
              f"Measured on: {machines[0]}."]
    return "\n".join(lines)


def printed(render, data):
    return machine.one_line(data["machine"]) + "\n\n" + render(data).rstrip()


def fenced(render):
    return lambda path: "```\n" + printed(render, json.loads(path.read_text())) + "\n```"


def command_table(render):
    return lambda path: render(json.loads(path.read_text()))


ONE_CPU = STORE / "articles-one-cpu.json"


def articles_head(path):
    return "\n\n".join(articles_table.head(json.loads(run.read_text())) for run in (path, ONE_CPU))


def article_tables(article):
    return lambda path: articles_table.of_article(json.loads(path.read_text()), json.loads(ONE_CPU.read_text()), article)


WRITTEN = [  # (text, mark, stored run, how it is shown)
    (ROOT / "docs" / "benchmarks.md", "malloc", STORE / "malloc.json", malloc_tables),
    (ROOT / "README.md", "malloc", STORE / "malloc.json", readme_table),
    (ROOT / "docs" / "mimalloc-bench.md", "mimalloc-bench", STORE / "mimalloc-bench.json", mimalloc_bench_table.render),
    (ROOT / "docs" / "benchmarks.md", "floors", STORE / "floors.json", fenced(report.floors)),
    (ROOT / "docs" / "latency.md", "latency", STORE / "latency.json", fenced(latency_table.render)),
    (ROOT / "docs" / "latency.md", "instructions", STORE / "instructions.json", command_table(command_tables.instructions)),
    (ROOT / "docs" / "latency.md", "startup", STORE / "startup.json", command_table(command_tables.startup)),
    (ROOT / "docs" / "heaps.md", "heaps", STORE / "heaps.json", fenced(heaps_table.render)),
    (ROOT / "docs" / "pools.md", "pools", STORE / "pools.json", command_table(command_tables.pools)),
    (ROOT / "docs" / "timers.md", "timers", STORE / "timers.json", command_table(command_tables.timers)),
    (ROOT / "docs" / "process.md", "processes", STORE / "processes.json", command_table(command_tables.processes)),
    (ROOT / "docs" / "simulate.md", "simulate", STORE / "simulate.json", command_table(command_tables.simulate)),
    (ROOT / "docs" / "service.md", "service", STORE / "service.json", command_table(service_table.overview)),
    (ROOT / "docs" / "service.md", "forks", STORE / "service.json", command_table(service_table.forks)),
    (ROOT / "docs" / "articles.md", "articles", STORE / "articles.json", articles_head),
    *((ROOT / "docs" / "articles-results.md", f"article {n}", STORE / "articles.json", article_tables(n)) for n in range(1, 6)),
]


PICTURES = [
    (ROOT / "docs" / "images" / "survivors.svg", STORE / "service.json", command_table(service_table.picture)),
    *((ROOT / "docs" / "images" / f"articles-{n}.svg", STORE / "articles.json", lambda path, n=n: charts.picture(json.loads(path.read_text()), n)) for n in range(1, 6)),
]


def write_tables():
    for articles in (STORE / "articles.json", ONE_CPU):  # as the freehold command wrote them
        if articles.exists():
            articles.write_text(dumps(json.loads(articles.read_text())))
    for text, mark, run, show in WRITTEN:
        if run.exists():
            text.write_text(between_marks(text.read_text(), mark, show(run)))
    for picture, run, show in PICTURES:
        if run.exists():
            picture.write_text(show(run))


def without_samples(data):
    """What the freehold command wrote, without the single measurements that its medians and spreads were made of."""
    return {**data, **({"series": [{key: value for key, value in one.items() if key != "samples"} for one in data["series"]]} if "series" in data else {})}


def keep(name, data):
    STORE.mkdir(exist_ok=True)
    if name == "pools":  # its table shows the comparisons alone
        data = {key: value for key, value in data.items() if key != "series"}
    (STORE / f"{name}.json").write_text(dumps(data))
    write_tables()


def finish(name, render, data, options, kept=None):
    """Prints a run, and keeps it, or `kept`, where the options say so."""
    print(printed(render, data))
    if getattr(options, "json", None):
        pathlib.Path(options.json).write_text(dumps(data))
    if options.docs:
        keep(name, kept or data)


SUBCOMMANDS = {  # of the freehold command, whose JSON is stored
    "pools": ["--threads", "1", "--tests", "single,random,short,long", "--repeat", "9"],
    "timers": ["--timers", "wheel,wheel-any-thread,queue,libuv,asio,baseline", "--tests", "rearm", "--large", "--loads", "alone"],
    "simulate": [],
}


def run_all():
    """Each in a process of its own, so that leftovers of the one before cannot disturb it."""
    for command in (["malloc", "--rounds", "3"], ["latency"], ["floors"], ["heaps"], ["instructions"], ["startup"], ["processes", "--repeat", "4"], ["service"]):
        if subprocess.run([ROOT / "script" / "bench", *command, "--docs"], check=False).returncode != 0:
            print(f"script/bench {' '.join(command)} failed: docs/benchmarks holds its last good run", file=sys.stderr)
            return 1
    for name, options in SUBCOMMANDS.items():
        with tempfile.TemporaryDirectory(prefix="freehold-bench-") as folder:
            result = pathlib.Path(folder) / f"{name}.json"
            if subprocess.run([built_command(), name, *options, "--json", result], check=False).returncode != 0:
                print(f"freehold {name} {' '.join(options)} failed", file=sys.stderr)
                return 1
            keep(name, without_samples(json.loads(result.read_text())))
    return 0


def main(arguments):
    parser = argparse.ArgumentParser(prog="script/bench docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a table is not that of the stored run")
    parser.add_argument("--run", action="store_true", help="measure everything first but the articles, about an hour")
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
    stale += [f"{picture.relative_to(ROOT)}" for picture, run, show in PICTURES if run.exists() and picture.read_text() != show(run)]
    for one in stale:
        print(f"not of the stored run: {one}; script/bench docs writes it again")
    return 1 if stale else 0
