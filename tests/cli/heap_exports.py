# SPDX-License-Identifier: MIT
"""What `freehold heap` writes in other people's formats, read by others: a decoder of protocol buffers that shares nothing with
the writer, Python's protobuf and Go's pprof where they are installed, speedscope's schema, and a sum of collapsed stacks. All must
say the same.

  heap_exports.py COMMAND PROGRAM SCHEMA
  heap_exports.py --protobuf FILE        what Python's protobuf reads there, as JSON; status 77: it is not installed
"""
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of each field: an integer, or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            assert key & 7 == 2, key
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            assert len(value) == length
        yield key >> 3, value


def packed(data):
    at, values = 0, []
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def all_of(message, number):
    return [value for field, value in fields(message) if field == number]


def one_of(message, number, otherwise=0):
    return (all_of(message, number) or [otherwise])[0]


# Of pprof's profile.proto: message -> field -> (number, type). Capitals: a message; []: repeated.
SCHEMA = {
    "ValueType": {"type": (1, "int64"), "unit": (2, "int64")},
    "Label": {"key": (1, "int64"), "str": (2, "int64"), "num": (3, "int64"), "num_unit": (4, "int64")},
    "Sample": {"location_id": (1, "uint64[]"), "value": (2, "int64[]"), "label": (3, "Label[]")},
    "Mapping": {"id": (1, "uint64"), "memory_start": (2, "uint64"), "memory_limit": (3, "uint64"), "file_offset": (4, "uint64"),
                "filename": (5, "int64"), "build_id": (6, "int64"), "has_functions": (7, "bool"), "has_filenames": (8, "bool"),
                "has_line_numbers": (9, "bool"), "has_inline_frames": (10, "bool")},
    "Line": {"function_id": (1, "uint64"), "line": (2, "int64"), "column": (3, "int64")},
    "Location": {"id": (1, "uint64"), "mapping_id": (2, "uint64"), "address": (3, "uint64"), "line": (4, "Line[]"), "is_folded": (5, "bool")},
    "Function": {"id": (1, "uint64"), "name": (2, "int64"), "system_name": (3, "int64"), "filename": (4, "int64"), "start_line": (5, "int64")},
    "Profile": {"sample_type": (1, "ValueType[]"), "sample": (2, "Sample[]"), "mapping": (3, "Mapping[]"), "location": (4, "Location[]"),
                "function": (5, "Function[]"), "string_table": (6, "string[]"), "drop_frames": (7, "int64"), "keep_frames": (8, "int64"),
                "time_nanos": (9, "int64"), "duration_nanos": (10, "int64"), "period_type": (11, "ValueType"), "period": (12, "int64"),
                "comment": (13, "int64[]"), "default_sample_type": (14, "int64"), "doc_url": (15, "int64")},
}


def profile_class(protobuf):
    """The class of the message Profile."""
    descriptor_pb2, descriptor_pool, message_factory = protobuf
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="perftools.profiles", syntax="proto3")
    field_type = descriptor_pb2.FieldDescriptorProto
    for name, members in SCHEMA.items():
        message = file.message_type.add(name=name)
        for member, (number, kind) in members.items():
            field = message.field.add(name=member, number=number, label=field_type.LABEL_REPEATED if kind.endswith("[]") else field_type.LABEL_OPTIONAL)
            kind = kind.removesuffix("[]")
            if kind[0].isupper():
                field.type, field.type_name = field_type.TYPE_MESSAGE, f".perftools.profiles.{kind}"
            else:
                field.type = getattr(field_type, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    message = pool.FindMessageTypeByName("perftools.profiles.Profile")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(message)
    return message_factory.MessageFactory(pool).GetPrototype(message)


def read_by_protobuf(path):
    """Types of the values, and bytes in use by function; every rule of the format that a reader relies on is asserted."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        return 77
    profile = profile_class((descriptor_pb2, descriptor_pool, message_factory))()
    data = gzip.decompress(pathlib.Path(path).read_bytes())
    profile.ParseFromString(data)
    known = len(profile.SerializeToString())
    profile.DiscardUnknownFields()
    assert len(profile.SerializeToString()) == known, "fields that the format does not have"
    text = profile.string_table
    assert text[0] == ""
    for numbers in ([one.id for one in profile.function], [one.id for one in profile.location], [one.id for one in profile.mapping]):
        assert 0 not in numbers and len(numbers) == len(set(numbers)), "numbers are not unique"
    functions = {one.id: text[one.name] for one in profile.function}
    mappings = {one.id for one in profile.mapping}
    locations = {}
    for one in profile.location:
        assert one.mapping_id == 0 or one.mapping_id in mappings
        locations[one.id] = [functions[line.function_id] for line in one.line]
    held = {}
    for sample in profile.sample:
        assert len(sample.value) == len(profile.sample_type)
        for name in {name for location in sample.location_id for name in locations[location]}:
            held[name] = held.get(name, 0) + sample.value[1]
    print(json.dumps({"types": [[text[one.type], text[one.unit]] for one in profile.sample_type], "default": text[profile.default_sample_type],
                      "period": profile.period, "held": held}))
    return 0


def check_by_protobuf(path, wanted):
    for python in dict.fromkeys((sys.executable, "/usr/bin/python3")):  # the packages of the system are its own Python's
        if not os.path.exists(python):
            continue
        done = subprocess.run([python, __file__, "--protobuf", str(path)], capture_output=True, text=True, check=False)
        if done.returncode == 77:
            continue
        assert done.returncode == 0, done.stderr
        read = json.loads(done.stdout)
        assert read["types"] == [["inuse_objects", "count"], ["inuse_space", "bytes"], ["peak_objects", "count"], ["peak_space", "bytes"]], read["types"]
        assert read["default"] == "inuse_space" and read["period"] == 16384
        for name, size in wanted.items():
            assert abs(read["held"][name] - size) < 0.001 * size + 1000, (name, read["held"][name], size)
        return
    print("no protobuf for Python: it was not asked")


def check_pprof(path, wanted):
    profile = gzip.decompress(path.read_bytes())
    strings = [text.decode() for text in all_of(profile, 6)]
    assert strings[0] == ""
    types = [strings[one_of(kind, 1)] for kind in all_of(profile, 1)]
    assert types == ["inuse_objects", "inuse_space", "peak_objects", "peak_space"], types
    units = [strings[one_of(kind, 2)] for kind in all_of(profile, 1)]
    assert units == ["count", "bytes", "count", "bytes"], units
    assert strings[one_of(profile, 14)] == "inuse_space"
    assert one_of(profile, 12) == 16384 and strings[one_of(one_of(profile, 11), 1)] == "space"
    functions = {one_of(f, 1): strings[one_of(f, 2)] for f in all_of(profile, 5)}
    locations = {one_of(l, 1): functions[one_of(one_of(l, 4), 1)] for l in all_of(profile, 4)}
    held = {}
    for sample in all_of(profile, 2):
        stack = [locations[number] for number in packed(one_of(sample, 1, b""))]
        values = packed(one_of(sample, 2))
        assert len(values) == 4
        for name in set(stack):
            held[name] = held.get(name, 0) + values[1]
    for name, size in wanted.items():
        assert abs(held[name] - size) < 0.001 * size + 1000, (name, held[name], size)
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        print("no Go: its pprof was not asked")
        return
    # Newer Go builds its pprof at the first call: into the user's cache, so that the next one finds it.
    cache = os.environ.get("GOCACHE") or str(pathlib.Path.home() / ".cache" / "go-build")
    top = subprocess.run([go, "tool", "pprof", "-top", "-unit=bytes", "-nodecount=100", str(path)], capture_output=True, text=True,
                         env={**os.environ, "HOME": str(path.parent), "PPROF_TMPDIR": str(path.parent), "GOCACHE": cache}, check=False)
    if "no such tool" in top.stderr:
        print("no pprof in this Go")
        return
    assert top.returncode == 0, top.stderr
    assert "Type: inuse_space" in top.stdout and "small_site" in top.stdout, top.stdout


def check_collapsed(path, wanted):
    held = {}
    for line in path.read_text().splitlines():
        stack, size = line.rsplit(" ", 1)
        for name in set(stack.split(";")):
            held[name] = held.get(name, 0) + int(size)
    for name, size in wanted.items():
        assert abs(held[name] - size) < 0.001 * size + 1000, (name, held[name], size)


def check_speedscope(path, schema, wanted):
    file = json.loads(path.read_text())
    try:
        import jsonschema
    except ImportError:
        print("no jsonschema: the file is not held against speedscope's schema")
    else:
        jsonschema.validate(file, json.loads(pathlib.Path(schema).read_text()))
    assert file["profiles"][file["activeProfileIndex"]]["name"] == "inuse_space", "it opens on another one"
    frames = [frame["name"] for frame in file["shared"]["frames"]]
    space = next(profile for profile in file["profiles"] if profile["name"] == "inuse_space")
    held = {}
    for stack, weight in zip(space["samples"], space["weights"]):
        for name in {frames[frame] for frame in stack}:
            held[name] = held.get(name, 0) + weight
    for name, size in wanted.items():
        assert abs(held[name] - size) < 0.001 * size + 1000, (name, held[name], size)


def main():
    if sys.argv[1] == "--protobuf":
        return read_by_protobuf(sys.argv[2])
    command, program, schema = sys.argv[1:4]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        recording = folder / "sites.heap"
        environment = {**os.environ, "FREEHOLD_PROFILE": "16384", "FREEHOLD_PROFILE_FILE": str(recording)}
        subprocess.run([command, "run", "--", program], env=environment, check=True, stdout=subprocess.DEVNULL)
        made = {}
        for kind in ("json", "pprof", "speedscope", "collapsed"):
            made[kind] = folder / kind
            subprocess.run([command, "heap", "show", "--format", kind, "--output", str(made[kind]), str(recording)], check=True)
        profile = json.loads(made["json"].read_text())
        wanted = {}
        for stack in profile["stacks"]:
            for name in {profile["frames"][frame]["function"] for frame in stack["frames"]}:
                if name.endswith("_site") and stack["values"][1] > 0:
                    wanted[name] = wanted.get(name, 0) + stack["values"][1]
        assert len(wanted) == 8, wanted
        check_pprof(made["pprof"], wanted)
        check_by_protobuf(made["pprof"], wanted)
        check_speedscope(made["speedscope"], schema, wanted)
        check_collapsed(made["collapsed"], wanted)
        diff = folder / "diff.pb.gz"
        subprocess.run([command, "heap", "diff", "--format", "pprof", "--output", str(diff), str(recording), str(recording)], check=True)
        assert gzip.decompress(diff.read_bytes())
    print("all formats say the same")


if __name__ == "__main__":
    sys.exit(main())
