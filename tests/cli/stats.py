# SPDX-License-Identifier: MIT
"""What `freehold stats` writes, read by others: Prometheus's text format, and the names and commands of docs/stats.md.

  stats.py COMMAND SUBJECT PAGE
"""
import json
import pathlib
import re
import subprocess
import sys

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\n"])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)")


def exposition(text):
    """The samples by family and labels; an assertion where the grammar is broken."""
    assert text.endswith("\n")
    families, samples, current = {}, {}, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            current = line.split(" ", 3)[2]
            assert current not in families, f"{current} begins twice"
            assert len(line.split(" ", 3)[3]) > 5, line
            families[current] = None
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == current and families[name] is None and kind in ("counter", "gauge"), line
            families[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, f"no sample: {line!r}"
            name, labels, value = match.groups()
            assert name == current and families[name], f"{name} stands apart from its family"
            assert (families[name] == "counter") == name.endswith("_total"), line
            assert (name, labels) not in samples, f"twice: {line}"
            samples[name, labels] = float(value)
    assert all(families.values())
    return families, samples


def check_by_their_parser(text, count):
    try:
        from prometheus_client.parser import text_string_to_metric_families
    except ImportError:
        print("prometheus_client is not installed: its parser was not asked")
        return
    read = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    assert len(read) == count, (len(read), count)
    assert any(sample.labels.get("heap") == 'empty "\\? heap' for sample in read), "the heap's name came through"


def check_prometheus(command, pid, page):
    text = subprocess.run([command, "stats", pid, "--prometheus"], capture_output=True, text=True, check=True).stdout
    families, samples = exposition(text)
    check_by_their_parser(text, len(samples))
    pid_label = f'pid="{pid}"'
    assert samples["freehold_threads", pid_label] == 4
    assert samples["freehold_heap_live_blocks", f'{pid_label},heap="orders"'] == 1001
    assert samples["freehold_heap_limit_bytes", f'{pid_label},heap="orders"'] == 64 << 20
    assert samples["freehold_pool_capacity_slots", f'{pid_label},pool="customers"'] == 10000
    assert samples["freehold_class_used_slots", f'{pid_label},slot_bytes="256"'] >= 20000
    documented = set(re.findall(r"`(freehold_[a-z_]+)`", page)) - {"freehold_limit_bytes"}  # the subject has no limit
    assert documented == families.keys(), documented ^ families.keys()


def keys_of(value, path=""):
    if isinstance(value, dict):
        for key, below in value.items():
            yield path + key
            yield from keys_of(below, path + key + ".")
    elif isinstance(value, list):
        for below in value:
            yield from keys_of(below, path)


def check_json(command, pid, page):
    report = json.loads(subprocess.run([command, "stats", pid, "--json", "-"], capture_output=True, text=True, check=True).stdout)
    names = {key.rsplit(".", 1)[-1] for key in keys_of(report)}
    missing = {name for name in names if f"`{name}`" not in page}
    assert not missing, f"docs/stats.md does not name {missing}"


def check_commands(command, pid, page):
    """Each command of the page works as it stands there, but for the process, and looks that follow each other faster."""
    lines = [line.split("#")[0].strip() for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    lines = [line for line in lines if line.startswith("freehold stats")]
    assert len(lines) >= 4, lines
    for line in lines:
        words = re.sub(r"--watch \S+", "--watch 0.1", re.sub(r"--count \d+", "", line)).replace("4711", pid).split()
        words += ["--count", "2"] if "--watch" in words else []
        done = subprocess.run([command, *words[1:]], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0 and done.stdout, (line, done)


def main():
    command, subject, page = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]).read_text()
    with subprocess.Popen([command, "run", "--live", "--", subject, "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        pid = str(process.pid)
        check_prometheus(command, pid, page)
        check_json(command, pid, page)
        check_commands(command, pid, page)
        process.stdin.close()
        assert process.wait(30) == 0, "it was harmed"


if __name__ == "__main__":
    main()
