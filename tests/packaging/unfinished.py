#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""script/package and script/release, when Ctrl-C or a full disk ends them: one line, exit code 130 or 2, and nothing that is half-written.

  unfinished.py TREE

The tools that take long are stand-ins, which begin a file and then wait for Ctrl-C, or fill the disk. It is a tmpfs of 24 MiB; without
user namespaces that part is left out.
"""
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

WAIT = 60  # seconds; a stand-in begins within one

# A tool begins $PART, and says so; what it then does is in $STAND_IN.
BEGIN = 'mkdir -p "$(dirname "$PART")"; echo half >"$PART"; touch "$BEGUN"; eval "$STAND_IN"\n'
TOOLS = {
    "dpkg-buildpackage": "PART=../freehold_0_amd64.deb\n" + BEGIN,
    "curl": 'cat "${0%/*}/../uplot.tgz"',
    "cmake": "PART=build/packages/half.o\n" + BEGIN,
    "cargo": '[ "$1" != --version ] || { echo cargo 99.0.0; exit; }\nPART=half.crate\n' + BEGIN,
}
HANG = "while :; do sleep 0.1; done"
FILL = "cat /dev/zero >>$PART"
REFUSAL = {HANG: (130, "interrupted"), FILL: (2, "the disk with build/ is full")}
COMMANDS = (
    ("script/package", "deb"),
    ("script/package", "wheel"),
    ("script/package", "crate"),
    ("script/release", "--check-reproducible", "deb"),
    ("script/release", "--dry-run", "90.0.0"),
)


def run(*words, **how):
    subprocess.run(words, check=True, **how)


def make_clone(tree, folder):
    """A small clone with what the scripts read, and with packages that were made before."""
    (folder / "script").mkdir(parents=True)
    for name in ("script/package", "script/release", "CHANGELOG.md", "CMakeLists.txt", "LICENSE"):
        shutil.copy(tree / name, folder / name)
    shutil.copytree(tree / "packaging", folder / "packaging", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("freehold/malloc/libfreehold.map", "freehold/process/c_api/libfreehold_process.map"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tree / name, folder / name)
    for part in ("alloc", "base", "check", "heap", "os", "pool", "profile", "slots", "sync", "malloc"):
        shutil.copytree(tree / "freehold" / part, folder / "freehold" / part, dirs_exist_ok=True)
    for name in ("malloc.h", "heap.h", "heap_scope.h"):
        shutil.copy(tree / "freehold" / name, folder / "freehold" / name)
    (folder / "script/bootstrap").write_text("#!/bin/sh\n")
    (folder / "script/bootstrap").chmod(0o755)
    (folder / ".gitignore").write_text("/build/\n")
    # What curl brings: a tarball whose only file is empty.
    (folder / "third_party/uplot").mkdir(parents=True)
    (folder / "third_party/uplot/README.md").write_text(f"<https://registry.example.org/uplot.tgz>\n`{hashlib.sha256().hexdigest()}`\n")
    git = ("git", "-C", str(folder), "-c", "user.name=test", "-c", "user.email=test@example.org")
    run(*git, "init", "--quiet", "--initial-branch=main")
    run(*git, "add", "--all")
    run(*git, "commit", "--quiet", "--message", "all")
    # Tools and packages that were finished stay: those of the kinds that are not made.
    for name, requirements in (("python/tools", "python"), ("release-tools", "release")):
        (folder / "build/package" / name).mkdir(parents=True)
        shutil.copy(folder / "packaging" / requirements / "requirements.txt", folder / "build/package" / name / "requirements.txt")
    (folder / "build/package/freehold-0-conan.tgz").write_text("finished")


def state(folder):
    listed = subprocess.run(("git", "-C", str(folder), "for-each-ref"), stdout=subprocess.PIPE, text=True, check=True).stdout
    return listed, sorted(str(file.relative_to(folder)) for file in (folder / "build").rglob("*"))


def check(folder, scratch, command, stand_in):
    """A complaint, or nothing."""
    temporary, begun = scratch / "tmp", scratch / "begun"
    temporary.mkdir(exist_ok=True)
    begun.unlink(missing_ok=True)
    before = state(folder)
    environment = {**os.environ, "PATH": f"{scratch}/bin:{os.environ['PATH']}", "TMPDIR": str(temporary), "STAND_IN": stand_in, "BEGUN": str(begun)}
    # A group of its own, as a terminal's job.
    with subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, start_new_session=True) as process:
        end = time.monotonic() + WAIT
        while stand_in == HANG and not begun.exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        if stand_in == HANG:
            os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=WAIT)
    status, line = REFUSAL[stand_in]
    what = f"{' '.join(command)}: "
    if not begun.exists():
        return f"{what}no stand-in ran; exit code {process.returncode}: {said}"
    if process.returncode != status or said.count("\n") != 1 or not said.endswith(f": {line}\n"):
        return f"{what}exit code {process.returncode}: {said}"
    # What was compiled stays for the next time, but on a full disk.
    allowed = {"build/package/uPlot.iife.js"} | ({"build/packages", "build/packages/half.o"} if stand_in == HANG else set())
    after = state(folder)
    left = set(after[1]) - set(before[1]) - allowed
    lost = set(before[1]) - set(after[1])
    shutil.rmtree(folder / "build/packages", ignore_errors=True)
    if after[0] != before[0] or left or lost or list(temporary.iterdir()):
        return f"{what}left {sorted(left)}, lost {sorted(lost)}, temporary {list(temporary.iterdir())}, references {after[0]}"
    return None


def main():
    tree, inner = pathlib.Path(sys.argv[1]), sys.argv[2:]
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        (scratch / "bin").mkdir()
        with tarfile.open(scratch / "uplot.tgz", "w:gz") as uplot:
            uplot.addfile(tarfile.TarInfo("package/dist/uPlot.iife.js"))
        for tool, text in TOOLS.items():
            (scratch / "bin" / tool).write_text("#!/bin/sh\n" + text)
            (scratch / "bin" / tool).chmod(0o755)
        folder, stand_in, commands = scratch / "clone", HANG, COMMANDS
        if inner:
            small = scratch / "small"
            small.mkdir()
            run("mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(small))
            # A release asks for more room before it begins: tests/packaging/release.sh.
            folder, stand_in, commands = small / "clone", FILL, COMMANDS[:-1]
        make_clone(tree, folder)
        complaints = [said for command in commands if (said := check(folder, scratch, command, stand_in))]
        if inner:
            run("umount", "--lazy", str(small))
    for complaint in complaints:
        print(complaint)
    if not inner:
        spaces = ("unshare", "--map-root-user", "--mount")
        if subprocess.run((*spaces, "true"), stderr=subprocess.DEVNULL, check=False).returncode:
            print("no user namespaces: a full disk was not tried")
        elif subprocess.run((*spaces, sys.executable, "-B", __file__, str(tree), "full"), check=False).returncode:
            complaints.append("a full disk")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
