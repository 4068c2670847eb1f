"""What the figures were measured on."""

import os
import pathlib
import platform


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


def describe():
    return {"processor": processor(), "cpus": len(os.sched_getaffinity(0)), "memory_mib": memory_mib(),
            "kernel": platform.release(), "libc": os.confstr("CS_GNU_LIBC_VERSION"),
            "transparent_huge_pages": read_first("/sys/kernel/mm/transparent_hugepage/enabled"),
            "load_before": os.getloadavg()[0]}
