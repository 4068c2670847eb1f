# SPDX-License-Identifier: MIT
"""Starts `freehold doctor`, with busy neighbours or under a quota."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time


class NoControlGroup(OSError):
    """Control groups cannot be made here; the text says why."""


@contextlib.contextmanager
def neighbours(count):
    """Processes that keep a CPU busy each. They also end by themselves within a second if this process was killed."""
    spin = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): sum(range(100_000))"
    busy = [subprocess.Popen([sys.executable, "-c", spin, str(os.getpid())]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def quota_folder():
    """Where a control group with a CPU quota can be made: the folder of version 1's cpu controller, or of version 2; none if nowhere."""
    for folder, file in ((pathlib.Path("/sys/fs/cgroup/cpu"), "cpu.cfs_quota_us"), (pathlib.Path("/sys/fs/cgroup"), "cgroup.subtree_control")):
        if (folder / "cgroup.procs").exists() and os.access(folder, os.W_OK):
            if file == "cpu.cfs_quota_us" or "cpu" in (folder / file).read_text().split():
                return folder
    return None


def remove_group(group):
    for _ in range(50):  # the last member's end may not have been accounted yet
        with contextlib.suppress(OSError):
            return group.rmdir()
        time.sleep(0.1)


@contextlib.contextmanager
def control_group(cpus):
    """A control group whose members get so many CPUs; gives the file that its members are written to. Throws NoControlGroup."""
    folder, period = quota_folder(), 100_000
    if folder is None:
        raise NoControlGroup("the cpu controller is not handed on to groups")
    group, quota = folder / f"freehold-doctor-{os.getpid()}", int(cpus * period)
    with contextlib.ExitStack() as stack:
        try:
            group.mkdir()
            stack.callback(remove_group, group)
            if (group / "cpu.cfs_quota_us").exists():
                (group / "cpu.cfs_period_us").write_text(str(period))
                (group / "cpu.cfs_quota_us").write_text(str(quota))
            else:
                (group / "cpu.max").write_text(f"{quota} {period}")
        except OSError as error:
            raise NoControlGroup(str(error)) from error
        yield group / "cgroup.procs"


def ask(doctor, words, timeout_s, keep=None, cpus=None, environment=None):
    """The report that `freehold doctor` writes with these arguments, and all that it printed. Where there is none: None, and why. `keep`: files
    for both, without their suffix. `cpus`: that a control group allows the doctor."""
    with contextlib.ExitStack() as stack:
        result = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())) / "report.json"
        members = stack.enter_context(control_group(cpus)) if cpus else None
        process = subprocess.Popen([doctor, "doctor", "--json", result, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, env=environment,
                                   preexec_fn=(lambda: members.write_text("0")) if members else None)
        try:
            printed, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.terminate()  # the doctor ends what it started
            process.communicate()
            return None, f"it did not end within {timeout_s:.0f} s"
        except BaseException:  # Ctrl-C, or a signal that ends this process
            process.terminate()
            process.communicate()
            raise
        if process.returncode not in (0, 1) or not result.is_file():
            return None, f"exit code {process.returncode}: {printed.strip()[-500:]}"
        text = result.read_text()
    if keep:
        keep.with_name(f"{keep.name}.json").write_text(text)
        keep.with_name(f"{keep.name}.txt").write_text(printed)
    return json.loads(text), printed
