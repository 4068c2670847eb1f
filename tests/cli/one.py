# SPDX-License-Identifier: MIT
"""The static command in an empty root: it holds the command, /proc and /dev/null, and for the runs glibc and one program.

  one.py STATIC_COMMAND EXAMPLE                     all that it can do
  one.py STATIC_COMMAND EXAMPLE QEMU -L LIBRARIES   of arm64: what an emulator can do

Exit code 77: this process may make no root.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ONE, EXAMPLE, *EMULATOR = sys.argv[1:]
FOREIGN = pathlib.Path(__file__).resolve().parents[2] / "packaging/foreign/run"
PROGRAM = "/bin/" + pathlib.Path(EXAMPLE).name
UNSHARE = ["unshare", "--mount", "--pid", "--fork", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
INSIDE = 'cd "$1" && mount -t proc proc proc && mount --bind /dev/null dev/null && {}; shift && exec chroot . "$@"'


def libraries_of(program):
    """Where they lie here, and in a root."""
    if EMULATOR:
        names = ("ld-linux-aarch64.so.1", "aarch64-linux-gnu/libc.so.6", "aarch64-linux-gnu/libm.so.6")
        return [(f"{EMULATOR[-1]}/lib/{name}", f"lib/{name}") for name in names]
    found = re.findall(r"(?:=> |^\t)(/\S+) \(", subprocess.check_output(["ldd", program], text=True), re.M)
    return [(library, library[1:]) for library in found]


class Root:
    def __init__(self, folder, *programs):
        self.folder = pathlib.Path(folder)
        for name in ("proc", "dev", "tmp", "bin"):
            (self.folder / name).mkdir()
        (self.folder / "dev/null").touch()
        (self.folder / "tmp").chmod(0o1777)
        shutil.copy(ONE, self.folder / "bin/freehold")
        for program in programs:
            shutil.copy(program, self.folder / "bin")
            for library, inside in libraries_of(program):
                (self.folder / inside).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(library, self.folder / inside)

    def run(self, *words, setup="true", variables=(), unshare=UNSHARE):
        """Exit code, output and errors of the command, after the shell's words `setup` in the root's folder."""
        environment = {"PATH": os.environ["PATH"], **dict(variables)}
        enter = [FOREIGN, "aarch64", self.folder] if EMULATOR else [*unshare, "sh", "-c", INSIDE.format(setup), "sh", self.folder]
        ended = subprocess.run([*enter, *words], env=environment, text=True, capture_output=True, timeout=120, check=False)
        return ended.returncode, ended.stdout, ended.stderr

    def copies(self):
        return sorted(self.folder.glob("tmp/freehold-*/*"))


def check_alone(root):
    code, out, err = root.run("/bin/freehold", "--version")
    assert code == 0 and re.fullmatch(r"freehold [0-9.]+\n", out), (code, out, err)
    code, out, err = root.run("/bin/freehold", "doctor", "--help")
    assert code == 0 and "--budget" in out, (code, out, err)
    assert not root.copies(), "nothing is written before it is needed"


RUN = ("/bin/freehold", "run", "--stats", "--", PROGRAM, "1000")


def check_run(root):
    code, out, err = root.run(*RUN)
    assert code == 0 and "small blocks" in err, (code, out, err)
    code, out, err = root.run("/bin/freehold", "run", "--", "/bin/freehold", "--version")
    assert code == 2 and "static program" in err, (code, out, err)


def check_copies(root):
    [library] = root.copies()
    assert library.name.startswith("libfreehold.so."), library
    assert library.parent.stat().st_mode & 0o777 == 0o700 and library.stat().st_mode & 0o777 == 0o500
    before = library.stat().st_mtime_ns, library.stat().st_ino
    assert root.run(*RUN)[0] == 0 and (library.stat().st_mtime_ns, library.stat().st_ino) == before, "it was written again"
    good = library.read_bytes()
    library.chmod(0o700)
    library.write_bytes(good[:-1] + b"x")
    library.chmod(0o500)
    assert root.run(*RUN)[0] == 0 and library.read_bytes() == good, "a copy with other content was used"


def check_refusals(root):
    run = ("/bin/freehold", "run", "--", "/bin/true")
    [library] = root.copies()
    name = library.parent.name
    for setup, says in [
            ("mount -t tmpfs -o ro none tmp", "Read-only file system"),
            ("mount -t tmpfs -o size=64k none tmp", "No space left on device"),
            ("mount -t tmpfs -o noexec none tmp", "is mounted noexec"),
            ("mount -t tmpfs -o mode=0777 none tmp", "may be changed by others"),
            (f"mount -t tmpfs none tmp && mkdir -m 0755 tmp/{name}", "is not this user's alone"),
            (f"mount -t tmpfs none tmp && mkdir tmp/mine && ln -s mine tmp/{name}", "Not a directory"),
            *([("mount -t tmpfs -o uid=12345,mode=0700 none tmp", "belongs to another user")] if os.geteuid() == 0 else []),
            ("mv tmp tmq", "No such file or directory"),
    ]:
        for words in (run, ("/bin/freehold", "doctor", "--budget", "20s", "--", "/bin/true")):
            code, out, err = root.run(*words, setup=setup)
            if (root.folder / "tmq").exists():
                (root.folder / "tmq").rename(root.folder / "tmp")
            assert code == 2 and not out and err.count("\n") == 1 and says in err and "set TMPDIR" in err, (setup, words, code, out, err)
    # Another place helps.
    (root.folder / "mine").mkdir(exist_ok=True)
    code, out, err = root.run(*run, setup="mount -t tmpfs -o ro none tmp", variables={"TMPDIR": "/mine"}.items())
    assert code == 0 and list(root.folder.glob("mine/freehold-*/*")), (code, out, err)


def check_doctor(root):
    code, out, err = root.run("/bin/freehold", "doctor", "--repeat", "2", "--json", "/tmp/report.json", "--", PROGRAM, "20000")
    assert code == 0, (code, out, err)
    report = json.loads((root.folder / "tmp/report.json").read_text())
    assert report["recording"] is not None and "not found near" not in out + err, (out, err)
    assert "freehold" in [one["name"] for one in report["experiment"]["variants"]], report["experiment"]["variants"]
    # Without a program it examines the example that it carries.
    code, out, err = root.run("/bin/freehold", "doctor", "--repeat", "1", "--threads", "1", "--env", "X")
    assert code == 2 and "two numbers" in err, (code, out, err)
    assert len(root.copies()) == 5, root.copies()


def check_attach(root):
    """To a process outside of the root, whose files are not in it: as in a container beside another."""
    with subprocess.Popen([EXAMPLE, "60000000"], stdout=subprocess.DEVNULL) as process:
        try:
            unshare = [word for word in UNSHARE if word not in ("--pid", "--fork")]
            code, out, err = root.run("/bin/freehold", "doctor", "attach", "--for", "1", str(process.pid), unshare=unshare)
        finally:
            process.kill()
    assert code == 0 and "Parser::" in out and "malloc and free in libc.so.6" in out, (code, out, err)


def check_foreign():
    code = subprocess.run([*EMULATOR, ONE, "--version"], check=False, stdout=subprocess.DEVNULL).returncode
    assert code == 0, code
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as glibc:
        root = Root(empty)
        code, _, err = root.run("/bin/freehold", "--version")
        if re.match("packaging/foreign/run: |unshare: ", err):
            print(f"skipped: {err}")
            return 77
        check_alone(root)
        check_run(Root(glibc, EXAMPLE))
    print("one: alone, run")
    return 0


def main():
    if EMULATOR:
        return check_foreign()
    if subprocess.run([*UNSHARE, "mount", "-t", "tmpfs", "none", "/tmp"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print("skipped: this process may make no root of its own")
        return 77
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as beside, tempfile.TemporaryDirectory() as glibc:
        check_alone(Root(empty))
        check_attach(Root(beside))
        root = Root(glibc, "/bin/true", EXAMPLE)
        check_run(root)
        check_copies(root)
        check_refusals(root)
        check_doctor(root)
    print("one: alone, beside another, run, refusals, doctor")
    return 0


sys.exit(main())
