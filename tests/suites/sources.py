# SPDX-License-Identifier: MIT
"""Fetches the suites' sources into a cache folder, by the ordinary clients of Debian's archive and of the crates' registry.

Debian's source packages are those of the release that runs here. The system's own lists of packages are not touched: apt gets
lists and settings of its own, below the cache folder. Only what a suite needs is unpacked. A crate's sources are vendored into a
scratch project.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import time

LISTS_LAST = 24 * 3600  # seconds


class Missing(Exception):
    """Says in one line why sources are not there."""


def last_error(text):
    """The line of a client's output that says most: apt's errors begin with E:, and cargo ends with the cause."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("E:")]
    return (errors or lines or ["no reason given"])[-1][:200]


def run(command, **options):
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, check=False, **options)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        raise Missing(f"{command[0]}: {last_error(done.stderr or done.stdout)}")
    return done.stdout


class Cache:
    """The sources below a folder."""

    def __init__(self, folder, offline=False, say=lambda text: None):
        self.folder = folder
        self.offline = offline
        self.say = say
        self.apt_settings = None

    def sources(self, suite):
        """The folder of the suite's sources, which are fetched if they are not there. Raises Missing."""
        folder = self.folder / "sources" / suite.name
        if suite.version:
            vendored = self.crate_folder(suite)
            if not vendored.is_dir():
                self.fetch(suite, self.fetch_crate)
            return vendored / suite.folder
        if not (folder / ".complete").exists():
            self.fetch(suite, self.fetch_package)
        return folder

    def fetch(self, suite, how):
        if self.offline:
            raise Missing(f"not in {self.folder}, and --offline forbids to fetch it")
        self.say(f"fetching {suite.source}")
        how(suite)

    def version(self, suite):
        if suite.version:
            return suite.version
        stamp = self.folder / "sources" / suite.name / ".complete"
        return stamp.read_text().strip() if stamp.exists() else ""

    # ---- Debian's source packages -------------------------------------------------------------------------------------

    def apt(self):
        """apt's settings, with lists of source packages that are at most a day old."""
        if self.apt_settings is None:
            if shutil.which("apt-get") is None:
                raise Missing("it comes from Debian's source packages, and there is no apt-get")
            self.apt_settings = self.update_lists((self.folder / "apt").resolve())
        return self.apt_settings

    def update_lists(self, folder):
        for name in ("lists/partial", "archives/partial"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        settings = [f"-oDir::Etc::sourcelist={folder}/sources.list", "-oDir::Etc::sourceparts=-", f"-oDir::State::Lists={folder}/lists",
                    f"-oDir::Cache={folder}", "-oAPT::Update::Error-Mode=any", "-oAcquire::Retries=1", "-oAcquire::http::Timeout=30"]
        if os.geteuid() == 0:
            settings.append("-oAPT::Sandbox::User=root")  # the user _apt may not write here
        archives = run(["apt-get", "indextargets", "--format", "deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)", "Identifier: Packages", "Origin: Debian"])
        if not archives.strip():
            raise Missing("apt knows no archive of Debian's: apt-get update")
        (folder / "sources.list").write_text("\n".join(sorted(set(archives.splitlines()))) + "\n")
        stamp = folder / "updated"
        if not stamp.exists() or time.time() - stamp.stat().st_mtime > LISTS_LAST:
            run(["apt-get", *settings, "-q", "update"])
            stamp.touch()
        return settings

    def fetch_package(self, suite):
        settings = self.apt()
        archives = self.folder / "archives" / suite.package
        archives.mkdir(parents=True, exist_ok=True)
        run(["apt-get", *settings, "-q", "source", "--download-only", suite.package], cwd=archives)
        found = sorted(archives.glob(f"{suite.package}_*.orig.tar.*[!c]"))  # not the signature .asc
        if not found:
            raise Missing(f"the source package {suite.package} has no .orig.tar")
        self.unpack(suite, found[-1])

    def unpack(self, suite, archive):
        """Only the files in the folder of the tests, without the archive's first folder."""
        folder = self.folder / "sources" / suite.name
        shutil.rmtree(folder, ignore_errors=True)
        with tarfile.open(archive) as members:
            for member in members:
                path = pathlib.PurePosixPath(*pathlib.PurePosixPath(member.name).parts[1:])
                if member.isfile() and path.is_relative_to(suite.tests_in) and ".." not in path.parts:
                    (folder / path.parent).mkdir(parents=True, exist_ok=True)
                    (folder / path).write_bytes(members.extractfile(member).read())
        if not folder.is_dir():
            raise Missing(f"{archive.name} has no {suite.tests_in}")
        (folder / ".complete").write_text(re.sub(r".*_(.*)\.orig\.tar.*", r"\1", archive.name))

    # ---- crates -------------------------------------------------------------------------------------------------------

    def crate_folder(self, suite):
        return self.folder / "crates" / suite.package / "vendor" / suite.package

    def fetch_crate(self, suite):
        if shutil.which("cargo") is None:
            raise Missing(f"it comes from the crate {suite.package}, and cargo is not installed: script/bootstrap crates")
        project = self.folder / "crates" / suite.package
        (project / "src").mkdir(parents=True, exist_ok=True)
        (project / "src" / "lib.rs").write_text("")
        (project / "Cargo.toml").write_text(
            f'[package]\nname = "suites"\nversion = "0.0.0"\nedition = "2021"\n\n[dependencies]\n{suite.package} = "={suite.version}"\n'
            "\n[workspace]\n")
        run(["cargo", "vendor", "--quiet"], cwd=project, env={**os.environ, "CARGO_NET_RETRY": "1"})
