# SPDX-License-Identifier: MIT
"""Runs kinds of misuse, each in a process of its own, and says how each ended.

A run is one of CLASSES, the worst first:
  hangs             it did not end
  n/a               the kind needs a function that this malloc does not have
  not seen          it ended as a correct program does
  caught otherwise  it was ended, by a fault or with other words than those of the kind
  by chance         only of several runs together: some were caught, and some were not
  caught            one line that names the kind, and SIGABRT, or the fault that it names; for leaks and contents see kinds.toml
"""

import dataclasses
import os
import re
import resource
import signal
import subprocess
import tomllib
from concurrent.futures import ThreadPoolExecutor

HANGS, NOT_SEEN, OTHERWISE, BY_CHANCE, CAUGHT, NOT_APPLICABLE = "hangs", "not seen", "caught otherwise", "by chance", "caught", "n/a"
CLASSES = [HANGS, NOT_APPLICABLE, NOT_SEEN, OTHERWISE, BY_CHANCE, CAUGHT]
FAULTS = ("use", "beyond", "ahead")  # words of reports after which the fault itself may end the process
TIMEOUT_SECONDS = 60
NO_SUCH_FUNCTION, NO_SUCH_KIND = 77, (2, 3)  # exit codes of the programs
LEAKED = re.compile(r"^freehold: leaked: (\d+) bytes in (\d+) blocks$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Column:
    """One malloc in one mode."""
    name: str
    label: str
    environment: dict = dataclasses.field(default_factory=dict)
    preload: str = ""
    ours: bool = False
    version: str = ""


@dataclasses.dataclass(frozen=True)
class Kind:
    """One misuse, as kinds.toml describes it."""
    name: str
    argument: str
    what: str
    program: str
    says: tuple
    also: tuple
    look: str
    environment: dict
    steady: bool
    unseen: dict
    more: dict


def kinds_of(description):
    """{title of a group: [kinds]} of what kinds.toml says."""
    groups = {}
    for key, group in description["groups"].items():
        prefix = f"{key}." if "like" in group else ""
        group = {**description["groups"][group["like"]], **group} if "like" in group else group
        kinds = []
        for name, about in group["kinds"].items():
            about = {"what": about} if isinstance(about, str) else about
            kinds.append(Kind(prefix + name, name, about["what"], group.get("program", "malloc"), tuple(about.get("says", group["says"])),
                              tuple(about.get("also", ())), about.get("look", group.get("look", "report")),
                              {**group.get("environment", {}), **about.get("environment", {})}, about.get("steady", True),
                              {**group.get("unseen", {}), **about.get("unseen", {})}, about))
        groups[group["title"]] = kinds
    return groups


def read_description(path):
    with path.open("rb") as file:
        return tomllib.load(file)


@dataclasses.dataclass(frozen=True)
class Outcome:
    code: int  # negative: the signal that ended it
    out: str
    err: str
    hung: bool = False


class Runner:
    """Runs kinds under columns, with the programs of one build."""

    def __init__(self, programs, description, jobs):
        self.programs, self.words, self.peers, self.jobs = programs, description["words"], description.get("peers", {}), jobs
        self.clean = {name: value for name, value in os.environ.items() if not name.startswith(("FREEHOLD_", "LD_PRELOAD", "MALLOC_"))}
        self.baselines = {}
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def program(self, kind):
        return self.programs / f"misuse_{kind.program}_program"

    def run(self, command, column, environment):
        preload = {"LD_PRELOAD": column.preload} if column.preload else {}
        try:
            done = subprocess.run(command, env={**self.clean, **preload, **column.environment, **environment}, stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=TIMEOUT_SECONDS, check=False)
        except subprocess.TimeoutExpired as late:
            return Outcome(0, "", (late.stderr or b"").decode(errors="replace"), hung=True)
        return Outcome(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def run_kind(self, kind, column):
        outcome = self.run([str(self.program(kind)), kind.argument], column, kind.environment)
        if outcome.code in NO_SUCH_KIND:
            raise SystemExit(f"{self.program(kind)} {kind.argument}: exit code {outcome.code}: no such kind (2), or another malloc answers (3)")
        return outcome

    def leaked(self, name, kind, column):
        """(bytes, blocks) of the list at exit; None if there is none."""
        outcome = self.run([str(self.program(kind)), name], column, kind.environment)
        found = LEAKED.search(outcome.err)
        right_end = outcome.code == 0 and outcome.out == "still alive\n"
        return (int(found[1]), int(found[2])) if found and right_end else None

    def class_of_leaks(self, kind, column):
        against = kind.more.get("against", "leak_of_nothing")
        before, after = self.leaked(against, kind, column), self.leaked(kind.name, kind, column)
        if before is None and after is None:
            return NOT_SEEN
        before = before or (0, 0)
        difference = after and (after[0] - before[0], after[1] - before[1])
        return CAUGHT if difference == (kind.more["bytes"], kind.more["blocks"]) else OTHERWISE

    def class_of_contents(self, kind, column, outcome):
        if outcome.code != 0:
            return OTHERWISE
        if column.ours:
            return CAUGHT if f"contents: {kind.more['contents']}\n" in outcome.out else NOT_SEEN
        return CAUGHT if re.search(r"contents: (?!5e)[0-9a-f]{2}\n", outcome.out) else NOT_SEEN

    def says_it(self, kind, column, err, code):
        """Whether the process ended with one of the reports that are right for the kind."""
        right = kind.says if column.name.startswith("checked") else kind.says + kind.also
        if not column.ours:
            words = self.peers.get(column.name, {})
            # Scudo ends by a trap of its own; glibc and hardened_malloc by abort().
            return code in (-signal.SIGABRT, -signal.SIGTRAP, -signal.SIGILL) and \
                any(word in words and re.search(words[word], err) for word in right)
        lines = err.splitlines()
        said = [word for word in right if lines and re.fullmatch(f"freehold: {re.escape(self.words[word])}: 0x[0-9a-f]+", lines[0])]
        ended = code == -signal.SIGABRT or (code == -signal.SIGSEGV and any(word in FAULTS for word in said))
        return bool(said) and ended and all(line.startswith("freehold:   ") for line in lines[1:])

    def classify(self, kind, column):
        if kind.look == "leaks":
            return self.class_of_leaks(kind, column), None
        outcome = self.run_kind(kind, column)
        if outcome.hung:
            return HANGS, outcome
        if outcome.code == NO_SUCH_FUNCTION:
            return NOT_APPLICABLE, outcome
        if kind.look == "contents":
            return self.class_of_contents(kind, column, outcome), outcome
        if outcome.code == 0:
            return NOT_SEEN, outcome
        return (CAUGHT if self.says_it(kind, column, outcome.err, outcome.code) else OTHERWISE), outcome

    def classify_all(self, work, times=1):
        """{(kind's name, column's name): [(class, outcome) of each time]} for pairs of a kind and a column."""
        with ThreadPoolExecutor(self.jobs) as pool:
            todo = [(kind, column) for kind, column in work for _ in range(times)]
            results = {}
            for (kind, column), ended in zip(todo, pool.map(lambda pair: self.classify(*pair), todo)):
                results.setdefault((kind.name, column.name), []).append(ended)
        return results

    def mind_legal(self, program, argument, column, environment):
        """What a correct program was minded for; None if it was not."""
        outcome = self.run([str(program), *argument], column, environment)
        good = outcome.code == 0 and not outcome.err and not outcome.hung
        return None if good else outcome
