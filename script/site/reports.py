# SPDX-License-Identifier: MIT
"""Writes docs/reports: the data of one page of each subcommand that writes pages, by the commands in the table of docs/reports.md.

They are kept in the tree, so that the site can be built without a build of Freehold and without minutes of measurements.
"""
import os
import pathlib
import re
import subprocess
import tempfile

import report_pages

ROW = re.compile(r"^\| \[[^\]]+\]\(reports/([\w-]+)\.json\) \| `freehold ([^`]+)`", re.MULTILINE)


def write(root, build, refused):
    build = pathlib.Path(build).resolve()
    command = build / "bin" / "freehold"
    if not command.is_file():
        raise refused(f"{command} is not there; cmake --build --preset release --target freehold_demo builds it", 2)
    reports = {name: line.split() for name, line in ROW.findall((root / "docs" / "reports.md").read_text(encoding="utf-8"))}
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        for name, words in reports.items():
            end = words.index("--") if "--" in words else len(words)  # behind it a program's own words follow
            words = [*words[:end], "--html", f"{name}.html", *words[end:]]
            print(f"freehold {' '.join(words)}", flush=True)
            environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"}  # for programs that come with Freehold
            done = subprocess.run([command, *words], cwd=scratch, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if done.returncode:
                raise refused(f"freehold {' '.join(words)} ended with status {done.returncode}: {(done.stdout.strip().splitlines() or [''])[-1]}")
            page = (scratch / f"{name}.html").read_text(encoding="utf-8")
            # The paths of an installed Freehold, not those of this build.
            page = page.replace(f"{build}/bin/", "/usr/local/bin/").replace(f"{build}/lib", "/usr/local/lib/lib")
            if str(root) in page or str(build) in page:
                raise refused(f"the page of freehold {words[0]} names a folder of this build")
            try:
                (scratch / f"{name}.json").write_text(report_pages.take_apart(root, page), encoding="utf-8")
            except ValueError as error:
                raise refused(f"freehold {words[0]}: {error}") from error
        (root / "docs" / "reports").mkdir(exist_ok=True)
        for name in reports:
            (root / "docs" / "reports" / f"{name}.json").write_bytes((scratch / f"{name}.json").read_bytes())
    return 0
