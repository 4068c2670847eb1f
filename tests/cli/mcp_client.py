# SPDX-License-Identifier: MIT
"""`freehold mcp` as a client of the Model Context Protocol sees it: messages on lines, tools, wrong input, cancelling.

  mcp_client.py COMMAND PAGE

Where PyPI's package mcp is importable, its client asks, too, and checks each answer against the protocol's types.
"""
import asyncio
import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time


class Client:
    def __init__(self, command):
        self.server = subprocess.Popen([command, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, **message):
        self.write(json.dumps({"jsonrpc": "2.0", **message}))

    def write(self, line):
        self.server.stdin.write(line + "\n")
        self.server.stdin.flush()

    def receive(self):
        message = json.loads(self.server.stdout.readline())
        assert message.pop("jsonrpc") == "2.0", message
        return message

    def ask(self, id, method, **params):
        self.send(id=id, method=method, params=params)
        answer = self.receive()
        assert answer["id"] == id, answer
        return answer

    def end(self):
        self.server.stdin.close()
        return self.server.wait(10)


def check_hello(client, page):
    hello = client.ask(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "1"})
    assert hello["result"]["serverInfo"]["name"] == "freehold" and "tools" in hello["result"]["capabilities"], hello
    client.send(method="notifications/initialized")  # has no answer: the next one is ping's
    assert client.ask("two", "ping") == {"id": "two", "result": {}}
    tools = client.ask(3, "tools/list")["result"]["tools"]
    for tool in tools:
        schema = tool["inputSchema"]
        assert set(schema["required"]) <= set(schema["properties"]) and len(tool["description"]) > 20, tool
    assert [tool["name"] for tool in tools] == re.findall(r"^\| `(\w+)` \|", page, re.M), "docs/mcp.md lists the tools"


def check_wrong_input(client):
    client.write("{")
    assert client.receive()["error"]["code"] == -32700
    client.write("[]")
    assert client.receive()["error"]["code"] == -32600
    deep = "[" * 300_000 + "]" * 300_000
    client.write('{"id": ' + deep + ', "method": "ping"}')
    assert client.receive()["error"]["code"] == -32600, "values that are nested deeply"
    client.write('{"id": 1, "method": "ping", "params": {"a": ' + deep + "}}")
    assert client.receive()["error"]["code"] == -32600
    for id in ("{}", "1.5", str(1 << 70)):  # would come back as another
        client.write('{"id": ' + id + ', "method": "ping"}')
        assert client.receive()["error"]["code"] == -32600, id
    client.send(method="notifications/cancelled", params={"requestId": 99})
    assert client.ask(4, "no/such")["error"]["code"] == -32601
    wrong = [{}, {"name": 7}, {"name": "nothing"}, {"name": "stats"}, {"name": "stats", "arguments": []},
             {"name": "stats", "arguments": {"pid": "1"}}, {"name": "stats", "arguments": {"pid": 0}},
             {"name": "stats", "arguments": {"pid": 1, "more": 2}}, {"name": "examine", "arguments": {"command": []}},
             {"name": "examine", "arguments": {"command": ["true"], "budget_s": "9"}},
             {"name": "heap_profile", "arguments": {"command": ["true\0more"]}},
             {"name": "explain_cause", "arguments": {"cause": "weather"}}]
    for params in wrong:
        error = client.ask(5, "tools/call", **params)["error"]
        assert error["code"] == -32602 and "\n" not in error["message"], (params, error)


def check_causes(client, schema):
    row, = re.findall(r"^\| `cause` \| text \| (`.*) \|$", schema, re.M)
    causes = re.findall(r"`([\w-]+)`", row)
    assert len(causes) > 10, row
    texts = set()
    for cause in causes:
        why = client.ask(6, "tools/call", name="explain_cause", arguments={"cause": cause})["result"]
        assert not why["isError"], (cause, why)
        texts.add(why["content"][0]["text"])
    assert len(texts) == len(causes), "each cause has its own text"


def check_calls(client):
    # Words that look like options are a program's, or a file's name.
    missing = client.ask(7, "tools/call", name="examine", arguments={"command": ["--no-such-program"]})["result"]
    assert missing["isError"] and missing["content"][0]["text"].startswith("freehold: "), missing
    missing = client.ask(8, "tools/call", name="compare_reports", arguments={"before": "--help", "after": "/none"})["result"]
    assert missing["isError"] and "--help" in missing["content"][0]["text"], missing
    held = "x = [bytearray(5000) for i in range(4000)]; print('done')"
    profile = client.ask(9, "tools/call", name="heap_profile", arguments={"command": [sys.executable, "-c", held]})["result"]
    assert not profile["isError"] and "done" in profile["content"][0]["text"], profile
    assert profile["structuredContent"]["format"] == "freehold-heap-profile", list(profile["structuredContent"])


def profile_of(client, id, *command):
    return client.send(id=id, method="tools/call", params={"name": "heap_profile", "arguments": {"command": command}})


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for_end(pid):
    until = time.monotonic() + 20
    while is_running(pid):
        assert time.monotonic() < until, "left behind"
        time.sleep(0.02)


def check_odd_programs(client):
    begin = time.monotonic()
    profile_of(client, 20, "sh", "-c", "sleep 55 & echo pid $!")  # it keeps the output open
    answer = client.receive()
    pid = int(re.search(r"pid (\d+)", answer["result"]["content"][0]["text"])[1])
    assert answer["id"] == 20 and time.monotonic() - begin < 30 and is_running(pid), answer
    os.kill(pid, signal.SIGKILL)
    profile_of(client, 21, "sh", "-c", """echo '{"format": "mine"}'; cat; cat /dev/tty || exit 7""")
    result = client.receive()["result"]
    assert result["structuredContent"]["format"] == "freehold-heap-profile" and '"mine"' in result["content"][0]["text"], result
    profile_of(client, 22, sys.executable, "-c", "import os\nfor i in range(65): os.write(1, b'x' * (1 << 20))")
    assert len(client.receive()["result"]["content"][0]["text"]) <= 1 << 16


# A program that ignores SIGTERM, with a child: both end with a cancelled call, and with the server.
def check_stubborn_programs(command, folder):
    for end in ("cancel", "close", "kill"):
        note = folder / end
        client = Client(command)
        stubborn = f"trap '' TERM; sleep 55 & echo $$ $! > {note}.new; mv {note}.new {note}; while :; do wait; done"
        if end == "kill":
            stubborn = stubborn.replace("trap '' TERM; ", "").replace("while :; do wait; done", "exec sleep 56")
        profile_of(client, 30, "sh", "-c", stubborn)
        while not note.exists():
            time.sleep(0.02)
        pids = [int(pid) for pid in note.read_text().split()]
        if end == "cancel":
            client.send(method="notifications/cancelled", params={"requestId": 30})
            profile_of(client, 31, "true")
            assert client.receive()["id"] == 31
        elif end == "close":
            assert client.end() == 0
        else:
            client.server.kill()
            client.server.wait()
            os.kill(pids.pop(), signal.SIGKILL)  # a child of the program's own, of which nobody knows
        for pid in pids:
            wait_for_end(pid)
        if end == "cancel":
            client.end()


def check_cancelling(client):
    sleep = {"name": "heap_profile", "arguments": {"command": ["sleep", "60"]}}
    begin = time.monotonic()
    client.send(id=10, method="tools/call", params={**sleep, "_meta": {"progressToken": "p"}})
    client.send(id=11, method="tools/call", params=sleep)
    assert client.ask(12, "ping") == {"id": 12, "result": {}}, "a call that runs blocks nothing else"
    for call in (11, 10):
        client.send(method="notifications/cancelled", params={"requestId": call})
    assert client.ask(13, "tools/call", name="heap_profile", arguments={"command": ["true"]})["id"] == 13
    assert time.monotonic() - begin < 30


# Its 1.x and 2.x name fields differently; by_alias has the protocol's own names.
async def ask_by_library(command):
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    async with stdio_client(StdioServerParameters(command=command, args=["mcp"])) as streams, ClientSession(*streams) as session:
        hello = (await session.initialize()).model_dump(by_alias=True)
        assert hello["serverInfo"]["name"] == "freehold", hello
        tools = (await session.list_tools()).model_dump(by_alias=True)["tools"]
        assert "examine" in [tool["name"] for tool in tools], tools

        async def call(name, **arguments):
            return (await session.call_tool(name, arguments)).model_dump(by_alias=True)
        why = await call("explain_cause", cause="allocator-lock")
        assert not why["isError"] and len(why["content"][0]["text"]) > 20, why
        profile = await call("heap_profile", command=[sys.executable, "-c", "x = [bytearray(5000) for i in range(4000)]; print('done')"])
        assert not profile["isError"] and profile["structuredContent"]["format"] == "freehold-heap-profile", profile
        missing = await call("examine", command=["no-such-program"])
        assert missing["isError"] and "no-such-program" in missing["content"][0]["text"], missing
        try:
            await call("stats", pid="one")
        except Exception as error:  # McpError, MCPError: the versions' names
            assert "pid" in str(error), error
        else:
            raise AssertionError("a call that does not fit the schema is an error of the protocol")


def main(command, page):
    if importlib.util.find_spec("mcp"):
        asyncio.run(asyncio.wait_for(ask_by_library(command), 60))
    else:
        print("PyPI's mcp is not installed: its client did not ask")
    client = Client(command)
    check_hello(client, pathlib.Path(page).read_text())
    check_wrong_input(client)
    check_causes(client, pathlib.Path(page).with_name("doctor-schema.md").read_text())
    check_calls(client)
    check_odd_programs(client)
    check_cancelling(client)
    with tempfile.TemporaryDirectory() as folder:
        check_stubborn_programs(command, pathlib.Path(folder))
    client.send(id=14, method="tools/call", params={"name": "heap_profile", "arguments": {"command": ["sleep", "60"]}})
    assert client.end() == 0, "the end of its input ends the server, and what it runs"
    client = Client(command)
    client.ask(1, "ping")
    client.server.send_signal(signal.SIGINT)
    assert client.server.wait(10) == 130


main(*sys.argv[1:])
