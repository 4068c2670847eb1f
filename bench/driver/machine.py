# SPDX-License-Identifier: MIT
"""Describes the machine of a run."""

import os
import pathlib
import platform
import subprocess
import time

from .rows import PROGRAMS


def read_first(path, default="unknown"):
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return default


def processor():
    for line in read_first("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def memory_mib():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (1 << 20)


def round_trip_ns():
    """Of a cache line between two CPUs; None with one CPU."""
    done = subprocess.run([PROGRAMS / "round_trip"], capture_output=True, text=True, timeout=60, check=False)
    return float(done.stdout) if done.returncode == 0 else None


def describe():
    return {"processor": processor(), "cpus": len(os.sched_getaffinity(0)), "memory_mib": memory_mib(),
            "kernel": platform.release(), "libc": os.confstr("CS_GNU_LIBC_VERSION"),
            "transparent_huge_pages": read_first("/sys/kernel/mm/transparent_hugepage/enabled"),
            "line_round_trip_ns": round_trip_ns(), "load_before": os.getloadavg()[0]}


def today():
    return time.strftime("%Y-%m-%d", time.gmtime())


def one_line(described):
    trip = described.get("line_round_trip_ns")
    return (f"{described['processor']}, {described['cpus']} CPUs, kernel {described['kernel']}, {described['libc']}, "
            f"a cache line's round trip {trip or '?'} ns")
