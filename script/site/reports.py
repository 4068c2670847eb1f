# SPDX-License-Identifier: MIT
"""The example reports: build/reports has one page for each row of the table of docs/index.md, written by the row's command."""
import os
import pathlib
import re
import subprocess

ROW = re.compile(r"^\| ([^|]+) \| `freehold ([^`]+)`", re.MULTILINE)


def name(words):
    """The file's name: of the page that `freehold WORDS` writes."""
    return words.split()[0] + ("-simulated" if "--simulate" in words else "") + ".html"


def written(root):
    return sorted((root / "build" / "reports").glob("*.html"))


def linked(root, markdown):
    """The page docs/index.md with a link to each report that is written."""
    there = {file.name for file in written(root)}
    return ROW.sub(lambda row: f"| [{row[1]}](reports/{name(row[2])}) | `freehold {row[2]}`" if name(row[2]) in there else row[0], markdown)


def write(root, build, refused):
    build = pathlib.Path(build).resolve()
    command = build / "bin" / "freehold"
    if not command.is_file():
        raise refused(f"{command} is not there; cmake --build --preset release --target freehold_demo builds it", 2)
    folder = root / "build" / "reports"
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"}  # for programs that come with Freehold
    for _, line in ROW.findall((root / "docs" / "index.md").read_text(encoding="utf-8")):
        words, before, behind = line.partition(" -- ")  # behind it a program's own words follow
        command_line = [command, *words.split(), "--html", name(line), *(before + behind).split()]
        print(f"freehold {line}", flush=True)
        done = subprocess.run(command_line, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise refused(f"freehold {line} ended with status {done.returncode}: {(done.stdout.strip().splitlines() or [''])[-1]}")
        page = (folder / name(line)).read_text(encoding="utf-8")
        # The paths of an installed Freehold, not those of this build.
        page = page.replace(f"{build}/bin/", "/usr/local/bin/").replace(f"{build}/lib", "/usr/local/lib/lib")
        if str(root) in page or str(build) in page:
            raise refused(f"the page of freehold {line} names a folder of this build")
        (folder / name(line)).write_text(page, encoding="utf-8")
    return 0
