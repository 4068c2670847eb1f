# SPDX-License-Identifier: MIT
"""What the heap profile costs programs that no one here wrote while it is on, at its default distance: instructions by callgrind, which do
not depend on the machine's load. Fails if one of them needs more of them than MOST says, beside the same with the profile off.

  heap_cost.py LIBRARY

Exit code: 77 if valgrind, or every one of the programs, is not installed.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# A share of the instructions. CPython's json module takes some twenty megabytes of fresh blocks in 130 million instructions here: 1.0
# to 1.2% were seen, of SQLite 0.2 to 0.7%, of Perl 0.1 to 0.5%.
MOST = {"perl": 0.01, "sqlite3": 0.02, "python3": 0.02}
DISTANCE = "524288"
PERL = """my %h; for my $i (1..40000) { $h{"key" . ($i * 7919 % 30011)} .= "v$i,"; }
my $n = 0; for my $k (sort keys %h) { my @parts = split /,/, $h{$k}; $n += @parts; } print "$n\\n";"""
PYTHON = """import json
text = json.dumps([{"id": i, "name": "n%d" % i, "tags": ["a%d" % (i % 7), "b"]} for i in range(4000)])
print(sum(len(one["name"]) for one in json.loads(text)))"""
SQL = """create table t(a integer, b text);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 8000) insert into t select x, hex(zeroblob(x % 40)) || x from c;
create index i on t(b);
select count(*), max(length(b)) from t where b > '000';
select a % 500, length(group_concat(b)) from t group by a % 500 order by 2 limit 3;"""
PROGRAMS = {
    "perl": ["/usr/bin/perl", "-e", PERL],
    "python3": ["/usr/bin/python3", "-S", "-c", PYTHON],
    "sqlite3": ["/usr/bin/sqlite3", ":memory:", SQL],
}


def instructions(words, library, distance, folder):
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": str(folder), "LD_BIND_NOW": "1", "LD_PRELOAD": str(library),
                   "FREEHOLD_PROFILE": distance, "PERL_HASH_SEED": "0", "PYTHONHASHSEED": "0",
                   "PYTHONMALLOC": "malloc"}  # small blocks, too, come from malloc
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'profile'}", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.strip(), done.stderr
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


def main():
    library = pathlib.Path(sys.argv[1])
    there = {name: words for name, words in PROGRAMS.items() if os.access(words[0], os.X_OK)}
    if shutil.which("valgrind") is None or not there:
        print("valgrind, or the programs, are not installed")
        return 77
    above = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        # Debian's valgrind gives up on the debug information of newer compilers.
        copy = folder / library.name
        subprocess.run(["objcopy", "--strip-debug", str(library), str(copy)], check=True)
        for name, words in there.items():
            off, on = (instructions(words, copy, distance, folder) for distance in ("0", DISTANCE))
            print(f"{name}: {off} instructions, {on} with the profile on: {100 * (on - off) / off:+.2f}%")
            if on - off >= MOST[name] * off:
                above.append(name)
    if above:
        print(f"more than {MOST}: {', '.join(above)}", file=sys.stderr)
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
