#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs real programs from Debian's packages with the system's malloc and under Freehold, and compares what they produce.

    run.py --library LIBRARY [NAME...]     all programs, or those named
    run.py --list
    --slow                                 ten times as long for each command, for an emulator

Every case runs twice in an empty directory of its own; the bytes it returns must be the same. That Freehold was really in use
is seen from the line that FREEHOLD_VERBOSE=1 makes it print in every process that allocates.
Exit code: 0 all the same, 1 a difference or a failure, 77 the program is not installed, 2 bad usage.
"""
import argparse
import contextlib
import hashlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

INPUTS = pathlib.Path(__file__).resolve().parent / "inputs"
ACTIVE = b"freehold: active"
SKIPPED = 77


class Failure(Exception):
    """A program did not do what it should; the text says what."""


PATIENCE = 1  # every limit of time is multiplied by it


class World:
    """Runs a case's commands with one malloc, and remembers whether Freehold announced itself."""

    def __init__(self, library, folder):
        self.folder = folder
        self.stderr = folder / "stderr.txt"
        self.environment = dict(os.environ, LC_ALL="C", TZ="UTC", HOME=str(folder))
        self.environment.pop("LD_PRELOAD", None)
        if library:
            self.environment.update(LD_PRELOAD=str(library), FREEHOLD_VERBOSE="1")

    def run(self, *command, stdin=b"", environment=None):
        """Runs a command to its end and returns its standard output."""
        with open(self.stderr, "ab") as errors:
            done = subprocess.run(command, cwd=self.folder, input=stdin, stdout=subprocess.PIPE, stderr=errors, timeout=120 * PATIENCE,
                                  env={**self.environment, **(environment or {})}, check=False)
        if done.returncode != 0:
            tail = self.stderr.read_bytes()[-500:].decode(errors="replace")
            raise Failure(f"{' '.join(map(str, command))[:200]}: exit code {done.returncode}\n{tail}")
        return done.stdout

    @contextlib.contextmanager
    def server(self, *command):
        """Runs a command in the background; it is ended when the block is left."""
        with open(self.stderr, "ab") as errors:
            process = subprocess.Popen(command, cwd=self.folder, stdout=errors, stderr=errors, env=self.environment)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(timeout=20 * PATIENCE)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def freehold_was_active(self):
        return ACTIVE in self.stderr.read_bytes()


def digest(data):
    return hashlib.sha256(data).hexdigest().encode()


def eventually(question, what, seconds=20):
    """Asks until the answer is true."""
    seconds *= PATIENCE
    end = time.monotonic() + seconds
    while not question():
        if time.monotonic() > end:
            raise Failure(f"{what} did not happen within {seconds} s")
        time.sleep(0.05)


# ---- the programs -----------------------------------------------------------------------------------------------------


def redis(world, io_threads):
    """A server under load from several threads; a fork that saves while clients write; then the data's own digest."""
    place = str(world.folder / "socket")
    cli = ["redis-cli", "-s", place]
    plain = {name: value for name, value in world.environment.items() if name != "LD_PRELOAD"}

    def ask(*words, data=None):
        return subprocess.run([*cli, *words], input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=plain,
                              timeout=60 * PATIENCE, check=False).stdout

    with world.server("redis-server", "--port", "0", "--unixsocket", place, "--dir", str(world.folder), "--save", "",
                      "--io-threads", str(io_threads), "--io-threads-do-reads", "yes" if io_threads > 1 else "no",
                      "--enable-debug-command", "local", "--loglevel", "warning"):
        eventually(lambda: ask("ping") == b"PONG\n", "the server's first answer")
        commands = b"".join(b"SET key:%d %s\r\nLPUSH list:%d %d\r\nHSET hash:%d field%d %d\r\n" %
                            (i, b"v" * (i * 37 % 3000), i % 50, i, i % 30, i, i) for i in range(20000))
        ask("--pipe", data=commands)
        ask("bgsave")
        load = subprocess.run(["redis-benchmark", "-s", place, "--threads", "2", "-n", "20000", "-r", "5000", "-d", "300", "-P",
                               "16", "-t", "set,get,lpush,lpop,sadd,hset", "-q"], stdout=subprocess.PIPE, env=plain, timeout=120 * PATIENCE,
                              check=False)
        if load.returncode != 0 or b"rror" in load.stdout:
            raise Failure("redis-benchmark: " + load.stdout.decode(errors="replace")[-300:])
        eventually(lambda: b"rdb_bgsave_in_progress:0" in ask("info", "persistence"), "the end of the save")
        if b"rdb_last_bgsave_status:ok" not in ask("info", "persistence"):
            raise Failure("the child that saves failed")
        ask("flushall")
        ask("--pipe", data=commands)
        result = ask("debug", "digest") + ask("dbsize")
        if b"20" not in result:
            raise Failure("the data did not arrive: " + result.decode(errors="replace"))
        return result


def python_threads(world):
    """An interpreter whose own small-object allocator is off, with threads that parse, compress and hash."""
    return world.run("/usr/bin/python3", str(INPUTS / "threads.py"), environment={"PYTHONMALLOC": "malloc"})


def compiler(world, command):
    """A compiler: the object file must be the same, byte for byte."""
    world.run(command, "-std=c++20", "-O1", "-c", str(INPUTS / "templates.cpp"), "-o", "out.o")
    return digest((world.folder / "out.o").read_bytes())


def sqlite(world):
    """A database engine: joins, indexes, a full-text search, an in-memory database and a file."""
    script = (INPUTS / "queries.sql").read_bytes()
    result = world.run("sqlite3", ":memory:", stdin=script) + world.run("sqlite3", "file.db", stdin=script)
    return result + world.run("sqlite3", "file.db", "PRAGMA integrity_check;")


def solver(world):
    """A solver on the pigeonhole problem: nine pigeons, eight holes."""
    pigeons, holes = 9, 8
    lines = [f"(declare-const p{i}_{j} Bool)" for i in range(pigeons) for j in range(holes)]
    lines += ["(assert (or " + " ".join(f"p{i}_{j}" for j in range(holes)) + "))" for i in range(pigeons)]
    lines += [f"(assert (not (and p{a}_{j} p{b}_{j})))" for j in range(holes) for a in range(pigeons) for b in range(a)]
    answer = world.run("z3", "-in", stdin="\n".join([*lines, "(check-sat)"]).encode())
    if answer != b"unsat\n":
        raise Failure("z3 says " + answer.decode(errors="replace"))
    return answer


def git(world):
    """Many short processes: a repository with a few hundred files, packed by several threads and checked."""
    environment = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
                   "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for role in ("AUTHOR", "COMMITTER"):
        environment.update({f"GIT_{role}_NAME": "n", f"GIT_{role}_EMAIL": "e@example.invalid"})
    world.run("git", "init", "-q", "repo", environment=environment)
    for commit in range(5):
        for i in range(60):
            (world.folder / "repo" / f"file{i}").write_text(f"{commit}\n" * (i * 11 + commit))
        world.run("git", "-C", "repo", "add", ".", environment=environment)
        world.run("git", "-C", "repo", "commit", "-q", "-m", str(commit), environment=environment)
    world.run("git", "-C", "repo", "-c", "pack.threads=4", "gc", "-q", "--aggressive", environment=environment)
    world.run("git", "-C", "repo", "fsck", "--full", "--strict", environment=environment)
    return world.run("git", "-C", "repo", "log", "--format=%H %T", environment=environment)


def compressor(world, name, *options):
    """A compressor with threads: the same compressed bytes, and the original back."""
    original = b"".join(hashlib.sha256(b"%d" % (i // 7)).digest() + b"%d" % i for i in range(200000))
    (world.folder / "data").write_bytes(original)
    packed = world.run(name, *options, "-c", "data")
    if world.run(name, "-d", "-c", stdin=packed) != original:
        raise Failure("what comes out is not what went in")
    return digest(packed)


def shell(world):
    """fork and exec: a shell's functions, pipes and subshells, and a make with four jobs."""
    (world.folder / "Makefile").write_text(
        "all: $(addprefix t,$(shell seq 60))\n\tcat $^ | sha256sum\nt%:\n\t@seq $* | sort -r | tr '\\n' ' ' > $@\n")
    script = 'f() { local s=; for i in $(seq 400); do s+=$(echo "$i" | tr 0-9 a-j); done; echo "${#s} $(echo "$s" | sha256sum)"; }; f; (f); f &\nwait'
    return world.run("bash", "-c", script) + world.run("make", "-s", "-j4")


def perl(world):
    """An interpreter that reallocates strings and rehashes tables all the time."""
    return world.run("perl", "-e", 'my %h; for my $i (1..200000) { $h{$i % 9973} .= chr(65 + $i % 26); } my $s = join ",", map '
                     '{ "$_=" . length $h{$_} } sort { $a <=> $b } keys %h; $s =~ s/(\\d+)=(\\d+)/$2:$1/g; print length $s, " ", unpack("%32C*", $s), "\\n";')


def php(world):
    """An interpreter that opens its extensions with RTLD_DEEPBIND: a database, prepared statements, a function of its own."""
    return world.run("php", str(INPUTS / "database.php"))


def sshd(world):
    """A server whose children confine themselves by a filter of system calls before they read what a stranger sends."""
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    for key in ("host", "user"):
        world.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    options = {"Port": port, "ListenAddress": "127.0.0.1", "HostKey": world.folder / "host", "PidFile": "none", "StrictModes": "no", "UsePAM": "no",
               "AuthorizedKeysFile": world.folder / "user.pub", "PermitRootLogin": "yes"}
    (world.folder / "config").write_text("".join(f"{name} {value}\n" for name, value in options.items()))
    ssh = ["ssh", "-F", "none", "-p", port, "-i", str(world.folder / "user"), "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o",
           "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "127.0.0.1"]
    with world.server("/usr/sbin/sshd", "-D", "-e", "-f", str(world.folder / "config")):
        eventually(lambda: b"Server listening" in world.stderr.read_bytes(), "the server's start")
        world.run(*ssh, "true")
        return world.run(*ssh, "seq 3")


CASES = {
    "redis": ("redis-server", lambda w: redis(w, 1)),
    "redis_io_threads": ("redis-server", lambda w: redis(w, 2)),
    "python": ("/usr/bin/python3", python_threads),
    "gcc": ("g++", lambda w: compiler(w, "g++")),
    "clang": ("clang++-19", lambda w: compiler(w, "clang++-19")),
    "sqlite": ("sqlite3", sqlite),
    "z3": ("z3", solver),
    "git": ("git", git),
    "zstd": ("zstd", lambda w: compressor(w, "zstd", "-q", "-T2", "-9")),
    "xz": ("xz", lambda w: compressor(w, "xz", "-T2", "-2", "--block-size=1MiB")),
    "shell": ("bash", shell),
    "perl": ("perl", perl),
    "php": ("php", php),
    "sshd": ("/usr/sbin/sshd", sshd),
}


def check(name, library):
    """Runs one case both ways. Returns what is wrong, or None."""
    program, case = CASES[name]
    results = {}
    for way, preload in (("system", None), ("freehold", library)):
        with tempfile.TemporaryDirectory(prefix="freehold-real-") as folder:
            world = World(preload, pathlib.Path(folder))
            world.stderr.touch()
            try:
                results[way] = case(world)
            except (Failure, subprocess.TimeoutExpired) as failure:
                return f"with {way} malloc: {failure}"
            if preload and not world.freehold_was_active():
                return f"{program} ran, but not with Freehold's malloc"
    if results["system"] != results["freehold"]:
        return f"different results:\n  system   {results['system'][:300]!r}\n  freehold {results['freehold'][:300]!r}"
    return None


def main():
    global PATIENCE
    parser = argparse.ArgumentParser(description="Real programs with the system's malloc and under Freehold.")
    parser.add_argument("--library", type=pathlib.Path, help="libfreehold.so")
    parser.add_argument("--list", action="store_true", help="name the programs")
    parser.add_argument("--slow", action="store_true", help="ten times as long for each command, for an emulator")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(CASES))
        return 0
    unknown = [name for name in arguments.names if name not in CASES]
    if unknown or arguments.library is None or not arguments.library.is_file():
        what = f"no program called {unknown[0]}; see --list" if unknown else "--library must name libfreehold.so"
        print(f"run.py: {what}", file=sys.stderr)
        return 2
    PATIENCE = 10 if arguments.slow else 1
    status = 0
    for name in arguments.names or CASES:
        if shutil.which(CASES[name][0]) is None:
            print(f"{name}: skipped, {CASES[name][0]} is not installed (script/bootstrap real)")
            status = status or (SKIPPED if arguments.names else 0)
            continue
        started = time.monotonic()
        problem = check(name, arguments.library.resolve())
        print(f"{name}: {problem or 'the same'} ({time.monotonic() - started:.1f} s)", flush=True)
        if problem:
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
