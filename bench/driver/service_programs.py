# SPDX-License-Identifier: MIT
"""Real programs for `script/bench service`: how each is started under a malloc, loaded for some seconds, and asked for figures.

A program is a generator: it is sent nothing, yields the command and its environment's changes, then is resumed with the process and the
seconds while the load runs, and returns further figures. `why_not` of a row says what is missing.
"""

import contextlib
import http.client
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass

from .rows import INPUTS

LIBC = "/lib/x86_64-linux-gnu/libc.so.6"


@dataclass(frozen=True)
class Program:
    name: str
    summary: str
    needs: tuple  # commands; the first is looked at for the malloc
    start: object  # (folder, port) -> command
    load: object  # (process, port, seconds) -> {figure: value}

    def why_not(self):
        missing = [command for command in self.needs if shutil.which(command) is None]
        return f"{', '.join(missing)} not installed" if missing else None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def connect(port, seconds=20):
    """A connection to a server that has just been started."""
    until = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=60)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


# ---- redis ------------------------------------------------------------------------------------------------------------


def start_redis(folder, port):
    return ["redis-server", "--port", str(port), "--save", "", "--dir", folder, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru",
            "--daemonize", "no", "--loglevel", "warning"]


def redis_call(stream, *words):
    stream.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in map(str.encode, words)))
    stream.flush()
    line = stream.readline()
    return stream.read(int(line[1:]) + 2).decode() if line[:1] == b"$" else line.decode()


def redis_fill(stream, first, count, size):
    value, batch = b"v" * size, 2000
    for at in range(first, first + count, batch):
        keys = range(at, at + batch)
        stream.write(b"".join(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(k), k, size, value) for k in (b"key:%09d" % (n * 7919 % 10**9) for n in keys)))
        stream.flush()
        for _ in keys:
            stream.readline()


def load_redis(_process, port, _seconds):
    """The shape of Mesh's paper: 700,000 values of 240 bytes, then 170,000 of 492, with room for 100 MB; then a snapshot."""
    with connect(port) as connection, connection.makefile("rwb") as stream:
        redis_fill(stream, 0, 700_000, 240)
        redis_fill(stream, 700_000, 170_000, 492)
        redis_call(stream, "BGSAVE")
        for _ in range(600):
            state = dict(line.split(":", 1) for line in redis_call(stream, "INFO").splitlines() if ":" in line)
            if state["rdb_bgsave_in_progress"] == "0":
                break
            time.sleep(0.1)
        return {"live_mib": int(state["used_memory"]) / (1 << 20), "child_dirty_mib": int(state["rdb_last_cow_size"]) / (1 << 20)}


# ---- web servers ------------------------------------------------------------------------------------------------------


def load_web(_process, port, seconds):
    """Four clients ask for documents of random keys."""
    connect(port).close()
    until, asked = time.monotonic() + seconds, [0] * 4

    def client(number):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while time.monotonic() < until:
            connection.request("GET", f"/{(asked[number] * 7919 + number * 104729) % 50_000}")
            connection.getresponse().read()
            asked[number] += 1

    clients = [threading.Thread(target=client, args=(number,)) for number in range(len(asked))]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    return {"requests": sum(asked)}


# ---- PostgreSQL -------------------------------------------------------------------------------------------------------


def as_postgres():
    """PostgreSQL does not run as root."""
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []


def start_postgres(folder, port):
    if os.getuid() == 0:
        os.chmod(folder, 0o755)
        data = pathlib.Path(folder) / "data"
        data.mkdir()
        user = pwd.getpwnam("postgres")
        os.chown(data, user.pw_uid, user.pw_gid)
    subprocess.run([*as_postgres(), "initdb", "-D", f"{folder}/data", "-A", "trust", "--no-sync"], cwd="/", check=True, capture_output=True, timeout=120)
    return [*as_postgres(), "postgres", "-D", f"{folder}/data", "-p", str(port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
            "-c", "fsync=off", "-c", "shared_buffers=32MB"]


def load_postgres(_process, port, seconds):
    connect(port).close()
    user = "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
    base = ["pgbench", "-h", "127.0.0.1", "-p", str(port), "-U", user]
    for _ in range(100):  # it listens before it answers
        if subprocess.run([*base, "-i", "-q", "-s", "5", "postgres"], capture_output=True, timeout=120, check=False).returncode == 0:
            break
        time.sleep(0.1)
    done = subprocess.run([*base, "-c", "8", "-j", "2", "-T", str(max(int(seconds), 1)), "postgres"], capture_output=True, text=True, timeout=seconds + 60, check=True)
    return {"requests": int(next(line.split(":")[1].split("/")[0] for line in done.stdout.splitlines() if "actually processed" in line))}


# ---- a compiler -------------------------------------------------------------------------------------------------------


def start_compiler(_folder, _port):
    clang = shutil.which("clang++-19") or "clang++"
    # A shell as a build's server: it compiles when a line comes, and waits when none does.
    return ["sh", "-c", f'while read -r file; do {clang} -std=c++20 -O0 -c "$file" -o /dev/null; echo done; done']


def load_compiler(process, _port, seconds):
    until, count = time.monotonic() + seconds, 0
    while time.monotonic() < until or count == 0:
        process.stdin.write(f"{INPUTS / 'compile.cpp'}\n")
        process.stdin.flush()
        if process.stdout.readline() != "done\n":
            raise OSError("the compiler's shell ended")
        count += 1
    return {"requests": count}


ALL = [
    Program("redis", "redis-server: values of 240 B, then of 492 B, room for 100 MB; then BGSAVE", ("redis-server",), start_redis, load_redis),
    Program("python", "a web server in Python that builds and caches documents", ("/usr/bin/python3",),
            lambda _folder, port: ["/usr/bin/python3", "-I", str(INPUTS / "web_server.py"), str(port)], load_web),
    Program("node", "the same in node", ("node",), lambda _folder, port: ["node", str(INPUTS / "web_server.js"), str(port)], load_web),
    Program("postgres", "PostgreSQL under pgbench, 8 clients", ("postgres", "initdb", "pgbench", "setpriv"), start_postgres, load_postgres),
    Program("compiler", "a compiler, file after file", ("clang++-19",), start_compiler, load_compiler),
]


def preload(row, allocator):
    """The library to preload. Debian's redis is linked with jemalloc, so glibc must be put in front of it."""
    return allocator.library or (LIBC if row.name == "redis" else None)


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="freehold-service-", ignore_cleanup_errors=True) as path:
        yield path
