#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The manual pages and completions say what --help of the real command says: every subcommand, every option.

  reference.py FREEHOLD FOLDER SCRATCH     FOLDER has man/, bash/, zsh/ and fish/

zsh, fish and man are asked if they are installed.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BASH = """source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _freehold; printf '%s\\n' "${COMPREPLY[@]}" """


def output(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False, **options)
    return done.stdout


class Help:
    """What --help of one command says."""

    def __init__(self, freehold, path):
        self.path = path
        text = output([freehold, *path, "--help"])
        sections = dict(re.findall(r"^(Options|Most used|Subcommands|Experiments|Positionals)[^\n]*:\n((?:  .*\n)*)", text, re.M))
        rows = [re.match(r"  (-\S+) ?(\S*)", line).groups() for line in sections["Options"].splitlines()]
        self.options = sorted(name for names, _ in rows for name in names.split(","))
        self.subcommands = re.findall(r"^  (\S+)", sections.get("Most used", "") + sections.get("Subcommands", "") + sections.get("Experiments", ""), re.M)
        self.runs_a_program = path in (["run"], ["doctor"], ["check-preload"], ["heap", "profile"])


def helps_of(freehold, path=()):
    one = Help(freehold, list(path))
    return [one, *(below for name in one.subcommands for below in helps_of(freehold, [*path, name]))]


class Shells:
    def __init__(self, folder, scratch):
        self.folder, self.scratch = folder, scratch
        self.names = ["bash", "zsh", "fish"]

    def ask(self, shell, words):
        """What the shell offers for the last of the words: the first column, and options that share a line."""
        line = " ".join(words)
        home = {**os.environ, "HOME": str(self.scratch), "XDG_CONFIG_HOME": str(self.scratch), "TERM": "dumb"}
        where = {"cwd": self.scratch, "env": home}
        if shell == "bash":
            text = output(["bash", "--norc", "-c", BASH, "bash", self.folder / "bash/freehold", *words], **where)
        elif shell == "zsh":
            text = output(["zsh", "-f", HERE / "completion.zsh", self.folder / "zsh", line], **where)
            text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", text)
        else:
            text = output(["fish", "-c", f"source {self.folder}/fish/freehold.fish; complete -C '{line}'"], **where)
        rows = [row.split() for row in text.splitlines() if row.strip()]
        return [word for row in rows for place, word in enumerate(row) if place == 0 or all(part.startswith("-") for part in row[: place + 1])]


def check_pages(helps, folder, fail):
    expected = {"-".join(["freehold", *one.path]) + ".1": one for one in helps}
    found = {page.name for page in (folder / "man").iterdir()}
    if found != set(expected):
        fail(f"manual pages {sorted(found)}, subcommands {sorted(expected)}")
    for name, one in expected.items():
        page = folder / "man" / name
        text = page.read_text(encoding="utf-8").replace("\\-", "-")
        for option in one.options:
            if f"\\fB{option}\\fR" not in text:
                fail(f"{name} lacks {option}")
        complaints = output(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page], env={**os.environ, "MANROFFSEQ": "", "MANWIDTH": "80"})
        complaints = "\n".join(line for line in complaints.splitlines() if re.search(r"^<standard input>|^troff|: warning", line))
        if complaints:
            fail(f"{name}: {complaints}")


def questions_of(helps, shell):
    """Words of a command line, what the shell must offer then, and what it must not."""
    for one in helps:
        at = ["freehold", *one.path]
        # zsh and fish offer long names where there are both.
        yield [*at, "-" if shell == "bash" else "--"], {name for name in one.options if shell == "bash" or name.startswith("--")}, set()
        for name in one.subcommands:
            yield [*at, name[:-1]], {name}, set()
    for words, offered in (
        ("freehold run -- unusual-prog", "unusual-program"),
        ("freehold run unusual-prog", "unusual-program"),
        ("freehold doctor --threads 1,2 unusual-prog", "unusual-program"),
        ("freehold run --json recorded-tr", "recorded-trace"),
    ):
        yield words.split(), {offered}, set()
    for words in ("freehold doctor --threads recorded-tr", "freehold run --stats recorded-tr"):
        yield words.split(), set(), {"recorded-trace"}


def check_completions(helps, shells, fail):
    def check(shell, words, wanted, unwanted):
        offered = set(shells.ask(shell, words))
        if not wanted <= offered or unwanted & offered:
            fail(f"{shell}: '{' '.join(words)}' lacks {sorted(wanted - offered)}, has {sorted(unwanted & offered)}; offers {sorted(offered)}")

    # A shell on a pseudo terminal waits more than it works.
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(check, shell, *question) for shell in shells.names for question in questions_of(helps, shell)]
        for one in asked:
            one.result()


def main():
    freehold, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    failures = []
    scratch = pathlib.Path(sys.argv[3]).resolve()
    shutil.rmtree(scratch, ignore_errors=True)
    (scratch / "bin").mkdir(parents=True)
    program = scratch / "bin/unusual-program"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    (scratch / "recorded-trace").write_text("", encoding="utf-8")
    os.environ["PATH"] = f"{scratch / 'bin'}:{os.environ['PATH']}"
    helps = helps_of(freehold)
    if len(helps) < 10:
        failures.append(f"--help names only {len(helps)} commands")
    shells = Shells(folder, scratch)
    check_pages(helps, folder, failures.append)
    check_completions(helps, shells, failures.append)
    print("\n".join(failures) or f"{len(helps)} commands, as in --help: manual pages, {', '.join(shells.names)}")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
