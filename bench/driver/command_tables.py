# SPDX-License-Identifier: MIT
"""Tables of stored runs of `freehold pools`, `timers` and `simulate` and of `script/bench processes`, `instructions` and `startup`, as Markdown."""

from . import peers, stats

NAMES = {"glibc": "glibc", "freehold": "Freehold", "gperftools": "gperftools", "jemalloc": "jemalloc", "mimalloc2": "mimalloc", "mimalloc3": "mimalloc",
         "onetbb": "oneTBB", "rpmalloc": "rpmalloc", "snmalloc": "snmalloc", "tcmalloc": "google/tcmalloc"}

STRUCTURES = {"wheel": "`TimerWheel`", "wheel-any-thread": "`TimerWheel`, any thread", "queue": "`TimerQueue`", "libuv": "libuv", "asio": "Boost.Asio",
              "baseline": "no timers: a line of memory and a handle for each"}
PROGRAMS = {"Freehold": "the pool", "gearmand": "gearmand on loopback, libgearman's own client and worker",
            "ProcessPoolExecutor": "Python's `ProcessPoolExecutor`"}


def figure(value):
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def row(cells):
    return f"| {' | '.join(cells)} |"


def table(header, lines):
    return "\n".join([row(header), "|---" * len(header) + "|", *map(row, lines)])


def stored(name):
    return f"[stored run](benchmarks/{name}.json)"


def source(data, command, what):
    about, name = data["machine"], command.split()[1]
    return (f"`{command}`, {what}; {about['cpu_model']}, {about['cpus']} CPUs, {about['system']}, {about['libc']}; {data['date'][:10]}, "
            f"medians of {data['settings']['repeat']} sets; {stored(name)}.")


def rearm(data):
    """{structure: {timers: ns of CPU for a pair}} of the test rearm, nothing else running."""
    found = {}
    for one in data["series"]:
        if one["test"] == "rearm" and one["load"] == "alone" and not one["failure"]:
            found.setdefault(one["structure"], {})[one["timers"]] = one["phases"][0]["cpu_ns"]
    return found


def timers(data):
    found = rearm(data)
    counts = sorted(found["baseline"])
    lines = [[name, *(figure(found[key][n]) if n in found[key] else "–" for n in counts)] for key, name in STRUCTURES.items() if key in found]
    over = {n: found["wheel"][n] / found["baseline"][n] for n in counts}
    lines.append(["`TimerWheel` over that line", *(f"{over[n]:.2f}" for n in counts)])
    baseline, libraries = found["baseline"], [key for key in ("libuv", "asio") if key in found]
    gains = [found[key][n] / found["wheel-any-thread"][n] for key in libraries for n in counts]
    said = (f"The last two rows show the baseline: with {counts[-1]:,} timers the memory alone takes {baseline[counts[-1]] / baseline[counts[0]]:.0f} times as long as with "
            f"{counts[0]:,}. `TimerWheel` takes {min(over.values()):.2f} to {max(over.values()):.2f} times the baseline. The wheel for any thread is "
            f"{min(gains):.2f} to {max(gains):.1f} times as fast as libuv and Boost.Asio.")
    return "\n".join([source(data, "freehold timers --timers wheel,wheel-any-thread,queue,libuv,asio,baseline --tests rearm --large --loads alone", "nanoseconds of CPU time for a pair of cancel and set"), "",
                      table(["armed timers", *(f"{n:,}" for n in counts)], lines), "", said])


def pools(data):
    """SingleThreadPool against the best of the others; lost rows first."""
    lines = [[one["text"], figure(one["ours"]), figure(one["best"]), f"`{one['pool']}`",
              f"{one['ratio']:.2f} ({one['least_ratio']:.2f}–{one['greatest_ratio']:.2f})"]
             for one in sorted(data["comparisons"], key=lambda one: -one["ratio"]) if one["threads"] == 1]
    return "\n".join([source(data, "freehold pools --threads 1 --tests single,random,short,long --repeat 9",
                             f"nanoseconds for an acquire and a release of {data['settings']['slot_bytes']} bytes"), "",
                      table(["row", "`SingleThreadPool`", "the best of the others", "which", "ratio (in the sets)"], lines)])


RARE = 0.02  # hand-overs a pair: rows below that on every number of cores are left out, as docs/simulate.md says


def simulate(data):
    """Both tables as the command prints them."""
    cores = data["settings"]["cores"]
    heading = f"{'workload':<10}{'bytes':>8}" + "".join(f"{n:>8}" for n in cores)

    def line(one, what):
        return f"{one['workload']:<10}{one['bytes']:>8}" + "".join(f"{count[what]:>8.3f}" for count in one["counts"])

    flat = {True: "  flat", False: "  grows", None: ""}
    misses = [line(one, "misses") + flat[one["flat"]] for one in data["rows"]]
    locks = [line(one, "hand_overs") + "".join(f"{one['counts'][-1][what]:>10.3f}" for what in ("sleeps", "calls"))
             for one in data["rows"] if max(count["hand_overs"] for count in one["counts"]) > RARE]
    return "\n".join([f"The output of `freehold simulate`, {data['date'][:10]} ({stored('simulate')}):", "", "```", "MISSES: lines that came from another core, or copies that had to go",
                      heading + "  from 4 cores on", *misses, "```", "", "```", "LOCKS that came from another core", heading + f"{'sleeps':>10}{'calls':>10}", *locks, "```"])


def name_of(key, about):
    """Ours without its version: it is that of the tree, or of a build that was not committed."""
    return NAMES.get(key, key) if key == peers.OURS else f"{NAMES.get(key, key)} {about['version']}"


def not_measured(data):
    return "".join(f"\n\nNot measured: {NAMES.get(key, key)}, which {reason}." for key, reason in data["missing"].items())


def instructions(data):
    """The fewest first."""
    counts = sorted(data["instructions"].items(), key=lambda one: one[1]["malloc"] + one[1]["free"])
    return (f"`script/bench instructions`, {data['date']}.\n\n"
            + table(["", f"malloc({data['bytes']})", "free"], [[name_of(key, about), f"{about['malloc']:.3g}", f"{about['free']:.3g}"] for key, about in counts])
            + not_measured(data))


def startup(data):
    """The quickest first."""
    added, plain, about = sorted(data["added"].items(), key=lambda one: one[1]["ms"]), data["plain"], data["machine"]
    return (f"`script/bench startup`, {data['rounds']} rounds; {about['processor']}, {about['cpus']} CPUs, kernel {about['kernel']}, {about['libc']}; {data['date']}; {stored('startup')}.\n\n"
            + table([f"added to {plain['ms']:.2f} ms and {plain['kib']:,.0f} KiB by", "ms", "KiB"],
                    [[name_of(key, one), f"{one['ms']:.2f}", f"{one['kib']:,.0f}"] for key, one in added]) + not_measured(data))


def processes(data):
    sets, trips = data["sets"], data["round_trips"]
    base = [one["Freehold"] for one in sets]
    lines = []
    for name in sets[0]:
        rates = [one[name] for one in sets]
        ratios = [b / r for b, r in zip(base, rates)]
        lines.append([PROGRAMS.get(name, name.replace("Freehold", "the pool")), f"{stats.median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f})",
                      "–" if name == "Freehold" else f"{stats.median(ratios):.3g} ({min(ratios):.3g} to {max(ratios):.3g})"])
    trip, ratio = (stats.median([one[key] for one in trips]) for key in ("microseconds", "ratio"))
    about = data["machine"]
    return "\n".join([f"`script/bench processes`; {about['processor']}, {about['cpus']} CPUs, kernel {about['kernel']}, {about['libc']}; {data['date'][:10]}, medians of "
                      f"{len(sets)} sets (least to greatest); {stored('processes')}.", "", table(["", "tasks a second", "the pool's tasks, divided by these"], lines), "",
                      f"One round trip takes {trip:.1f} µs, {ratio:.2f} times a bare futex ping-pong between two processes of the same run."])
