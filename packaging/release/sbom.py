#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes the SBOM of a release as SPDX 2.3 JSON, by spdx-tools, which validates it, too.

  sbom.py VERSION FOLDER NAME

It lists the files of the release that lie in FOLDER, and what is compiled or linked into them: libraries of Debian by their
installed versions, and third_party/ by the version in its README. NAME is the file to write in FOLDER.
"""
import datetime
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import uuid

from spdx_tools.spdx.model import (Actor, ActorType, Checksum, ChecksumAlgorithm, CreationInfo, Document, ExternalPackageRef,
                                   ExternalPackageRefCategory, Package, Relationship, RelationshipType, SpdxNoAssertion)
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
from spdx_tools.spdx.writer.write_anything import write_file

NAMESPACE = uuid.UUID("5d3d2b64-7a2a-4b0a-9d2b-0f3f3c7c2a11")
ARTEFACTS = (".tar.gz", ".tgz", ".patch", ".deb", ".whl", ".crate", "-linux-x86_64", "-linux-aarch64")
# Packages of Debian, and how Freehold has them.
COMPILED_IN = ["libcli11-dev", "nlohmann-json3-dev", "libboost-dev", "libuv1-dev", "libunwind-19-dev", "liblzma-dev", "libbz2-dev"]
LINKED = ["libfmt-dev", "libdw-dev", "libiberty-dev", "zlib1g-dev", "libgearman-dev"]


def debian_version(package):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def reference(kind, value):
    return ExternalPackageRef(ExternalPackageRefCategory.PACKAGE_MANAGER, kind, value)


def package(name, version, **more):
    ident = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)
    return Package(spdx_id=ident, name=name, version=version, download_location=SpdxNoAssertion(), files_analyzed=False, **more)


def artefacts(folder):
    for file in sorted(folder.rglob("*")):
        if file.name.endswith(ARTEFACTS):
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            name = str(file.relative_to(folder))
            yield package(name, None, file_name=name, checksums=[Checksum(ChecksumAlgorithm.SHA256, digest)])


def document(version, folder):
    created = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc).replace(tzinfo=None)
    own = package("freehold", version, external_references=[reference("purl", f"pkg:generic/freehold@{version}")])
    packages, relations = [own], [Relationship("SPDXRef-DOCUMENT", RelationshipType.DESCRIBES, own.spdx_id)]
    for one in artefacts(folder):
        packages.append(one)
        relations.append(Relationship(own.spdx_id, RelationshipType.DISTRIBUTION_ARTIFACT, one.spdx_id))
    for names, relation in ((COMPILED_IN, RelationshipType.STATIC_LINK), (LINKED, RelationshipType.DYNAMIC_LINK)):
        for name in names:
            found = debian_version(name)
            packages.append(package(name, found, external_references=[reference("purl", f"pkg:deb/debian/{name}@{found.replace(':', '%3A').replace('+', '%2B')}")]))
            relations.append(Relationship(own.spdx_id, relation, packages[-1].spdx_id))
    plots = re.match(r"# uPlot (\S+)", pathlib.Path("third_party/uplot/README.md").read_text(encoding="utf-8"))[1]
    packages.append(package("uplot", plots, external_references=[reference("purl", f"pkg:npm/uplot@{plots}")]))
    relations.append(Relationship(own.spdx_id, RelationshipType.CONTAINS, packages[-1].spdx_id))
    info = CreationInfo("SPDX-2.3", "SPDXRef-DOCUMENT", f"freehold-{version}",
                        f"https://spdx.org/spdxdocs/freehold-{version}-{uuid.uuid5(NAMESPACE, version)}",
                        [Actor(ActorType.TOOL, "script/release"), Actor(ActorType.ORGANIZATION, "The Freehold authors")], created)
    return Document(info, packages=packages, relationships=relations)


def main():
    if len(sys.argv) != 4:
        print("sbom.py VERSION FOLDER NAME", file=sys.stderr)
        return 2
    version, folder, name = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    target = folder / name
    write_file(document(version, folder), str(target), validate=False)
    complaints = validate_full_spdx_document(parse_file(str(target)))
    for one in complaints:
        print(one.validation_message, file=sys.stderr)
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
