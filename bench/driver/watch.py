# SPDX-License-Identifier: MIT
"""Watches the memory of a process and its children from outside, as a service's operator sees it."""

import array
import pathlib
import tempfile
import threading
import time

MIB = 1 << 20


def family(pid):
    """The process and all of its descendants."""
    found = [pid]
    for one in found:
        try:
            for task in pathlib.Path(f"/proc/{one}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
        except (OSError, ValueError):
            pass  # it has ended
    return found


def anonymous_bytes(pid):
    """Resident anonymous memory less the pages that are lazily freed; pages that a fork shares count in parts. 0: it has ended."""
    fields = {}
    try:
        for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
            name, value = line.split()[:2]
            fields[name] = int(value) * 1024
    except (OSError, ValueError):
        return 0
    return max(fields.get("Pss_Anon:", fields.get("Anonymous:", 0)) - fields.get("LazyFree:", 0), 0)


class Watch:
    """Samples resident and live bytes every `period` seconds until stop(). `live_file`: where bench/macro/service.hpp counts."""

    def __init__(self, pid, period, live_file=None):
        self.pid, self.period, self.live_file = pid, period, live_file
        self.samples = []  # (seconds, resident bytes, live bytes)
        self.started = time.monotonic()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def live(self):
        if self.live_file is None:
            return 0
        counts = array.array("q")
        counts.frombytes(pathlib.Path(self.live_file).read_bytes())
        return sum(counts)

    def run(self):
        while not self.ended.wait(self.period):
            resident = sum(map(anonymous_bytes, family(self.pid)))
            if resident != 0:
                self.samples.append((time.monotonic() - self.started, resident, self.live()))

    def stop(self):
        self.ended.set()
        self.thread.join()


def live_file():
    """An empty file for the counts of live bytes; the caller keeps the object as long as it is used."""
    return tempfile.NamedTemporaryFile(prefix="freehold-live-")


def summarise(samples, loaded_at):
    """MiB and ratios of one run: of the load until `loaded_at` seconds, and of the last sample, after the idle time."""
    load = [one for one in samples if one[0] <= loaded_at] or samples[:1]
    if not load:
        return {}
    resident, live = [one[1] for one in load], [one[2] for one in load]
    found = {"mean": sum(resident) / len(load) / MIB, "peak": max(resident) / MIB, "floor": samples[-1][1] / MIB}
    if sum(live) > 0:
        found |= {"integral_ratio": sum(resident) / sum(live), "peak_ratio": max(resident) / max(live), "live": samples[-1][2] / MIB}
    return found
