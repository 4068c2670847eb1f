# SPDX-License-Identifier: MIT
"""freehold.ProcessPool by the documentation of concurrent.futures: Executor, Future, as_completed, wait. What tests/python/process_pool_test.py
has of it, which runs beside this as test_process_pool.py, is not here again."""
import concurrent.futures
import itertools
import os
import pathlib
import threading
import time
from collections.abc import Iterator

import pytest

import slow
from freehold import ProcessPool

TIMEOUT = 60 * slow.TIMES


def identity(value: int) -> int:
    return value


def pid(_: int = 0) -> int:
    return os.getpid()


def divide(a: int, b: int) -> float:
    return a / b


def wait_for(path: str) -> str:
    """Until the file is there."""
    end = time.monotonic() + TIMEOUT
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.005)
    return path


def fail_at(value: int, at: int) -> int:
    if value == at:
        raise KeyError(value)
    return value


@pytest.fixture(scope="module")
def pool() -> "Iterator[ProcessPool]":
    with ProcessPool(2) as executor:
        yield executor


@pytest.fixture
def one() -> "Iterator[ProcessPool]":
    with ProcessPool(1) as executor:
        yield executor


@pytest.fixture
def gate(tmp_path: pathlib.Path) -> str:
    return str(tmp_path / "gate")


def open_gate(path: str) -> None:
    pathlib.Path(path).touch()


def begin(executor: ProcessPool, gate: str) -> "concurrent.futures.Future[str]":
    """A call that runs until the gate is open."""
    future = executor.submit(wait_for, gate)
    while not future.running():
        time.sleep(0.001)
    return future


# ---- Future

def test_future_states_follow_the_call(one: ProcessPool, gate: str) -> None:
    first, second = begin(one, gate), one.submit(identity, 2)
    assert (first.running(), first.done(), first.cancelled()) == (True, False, False)
    assert (second.running(), second.done()) == (False, False)
    with pytest.raises(concurrent.futures.TimeoutError):
        second.result(timeout=0.05)
    with pytest.raises(concurrent.futures.TimeoutError):
        second.exception(timeout=0.05)
    open_gate(gate)
    assert second.result(TIMEOUT) == 2
    assert (first.done(), first.running(), second.done()) == (True, False, True)


def test_cancel_stops_what_has_not_begun_only(one: ProcessPool, gate: str, tmp_path: pathlib.Path) -> None:
    running, mark = begin(one, gate), tmp_path / "mark"
    waiting = one.submit(os.mkdir, str(mark))
    assert not running.cancel()
    assert waiting.cancel() and waiting.cancelled() and waiting.done()
    with pytest.raises(concurrent.futures.CancelledError):
        waiting.result(TIMEOUT)
    with pytest.raises(concurrent.futures.CancelledError):
        waiting.exception(TIMEOUT)
    open_gate(gate)
    assert running.result(TIMEOUT) == gate and not running.cancel()
    assert one.submit(identity, 3).result(TIMEOUT) == 3
    assert not mark.exists()


def test_callbacks_are_called_once_in_order_and_their_errors_are_ignored(one: ProcessPool, gate: str) -> None:
    called: "list[object]" = []
    future = begin(one, gate)
    future.add_done_callback(lambda done: called.append(("first", done is future)))
    future.add_done_callback(lambda done: 1 / 0)  # type: ignore[arg-type, return-value]
    over = threading.Event()
    future.add_done_callback(lambda done: (called.append("last"), over.set()))  # type: ignore[arg-type, return-value]
    assert called == []
    open_gate(gate)
    assert over.wait(TIMEOUT) and called == [("first", True), "last"]
    future.add_done_callback(lambda done: called.append("at once"))
    assert called[-1] == "at once"


def test_callback_of_a_cancelled_call_is_called(one: ProcessPool, gate: str) -> None:
    running, waiting, called = begin(one, gate), one.submit(identity, 1), []
    waiting.add_done_callback(lambda done: called.append(done.cancelled()))
    waiting.cancel()
    assert called == [True]
    open_gate(gate)
    running.result(TIMEOUT)


# ---- Executor.map

def test_map_gives_results_in_order_of_the_shortest_iterable(pool: ProcessPool) -> None:
    assert list(pool.map(divide, [6, 4, 2], itertools.repeat(2))) == [3, 2, 1]
    assert list(pool.map(identity, range(30), chunksize=7)) == list(range(30))
    assert list(pool.map(identity, [])) == []


def test_map_collects_iterables_at_once_without_buffersize(pool: ProcessPool) -> None:
    taken = iter(range(10))
    results = pool.map(identity, taken)
    assert list(taken) == []
    assert list(results) == list(range(10))


def test_map_raises_when_the_failed_result_is_taken(pool: ProcessPool) -> None:
    results = pool.map(fail_at, range(4), [2] * 4)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(KeyError):
        next(results)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_map_buffersize_bounds_what_is_taken(pool: ProcessPool, size: int) -> None:
    taken = itertools.count()
    results = pool.map(identity, taken, buffersize=size)
    assert next(taken) == size  # nothing more has been taken than has room
    for number in range(20):
        assert next(results) == (number if number < size else number + 1)  # the one that was taken here is missing
        if number == 10:
            time.sleep(0.05)
    assert next(taken) == size + 1 + 20
    results.close()  # type: ignore[attr-defined]


def test_map_buffersize_with_chunks_counts_calls(pool: ProcessPool) -> None:
    taken = itertools.count()
    results = pool.map(identity, taken, buffersize=3, chunksize=4)
    assert [next(results) for _ in range(10)] == list(range(10))
    assert next(taken) <= 4 * (3 + 3)


def test_map_buffersize_is_checked(pool: ProcessPool) -> None:
    with pytest.raises(TypeError, match="buffersize must be an integer or None"):
        pool.map(identity, [], buffersize="2")  # type: ignore[arg-type]
    for size in (0, -1):
        with pytest.raises(ValueError, match="buffersize must be None or > 0"):
            pool.map(identity, [], buffersize=size)
    with pytest.raises(ValueError):
        pool.map(identity, [], chunksize=0)


def test_map_that_is_left_cancels_what_has_not_begun(one: ProcessPool, gate: str, tmp_path: pathlib.Path) -> None:
    marks = [str(tmp_path / f"mark{number}") for number in range(5)]
    open_gate(gate)
    results = one.map(first_or_make, [gate, *marks])
    assert next(results) == gate
    later = one.submit(identity, 1)
    results.close()  # type: ignore[attr-defined]
    assert later.result(TIMEOUT) == 1
    assert not all(os.path.exists(mark) for mark in marks)


def first_or_make(path: str) -> str:
    if not os.path.exists(path):
        time.sleep(0.1)
        os.mkdir(path)
    return path


# ---- Executor.shutdown

def test_shutdown_without_waiting_returns_while_calls_run(gate: str) -> None:
    executor = ProcessPool(1)
    running, waiting = begin(executor, gate), executor.submit(identity, 2)
    executor.shutdown(wait=False)
    assert not running.done()
    open_gate(gate)
    assert (running.result(TIMEOUT), waiting.result(TIMEOUT)) == (gate, 2)


def test_with_waits_for_its_calls() -> None:
    with ProcessPool(2) as executor:
        future = executor.submit(time.sleep, 0.2)
    assert future.done()


# ---- the module's functions

def test_wait_and_as_completed_take_its_futures(pool: ProcessPool, gate: str) -> None:
    slow, quick = begin(pool, gate), pool.submit(identity, 1)
    done, pending = concurrent.futures.wait([slow, quick], TIMEOUT, concurrent.futures.FIRST_COMPLETED)
    assert (done, pending) == ({quick}, {slow})
    order = concurrent.futures.as_completed([slow, quick], TIMEOUT)
    assert next(order) is quick
    open_gate(gate)
    assert next(order) is slow
    failed = pool.submit(divide, 1, 0)
    assert failed in concurrent.futures.wait([failed], TIMEOUT, concurrent.futures.FIRST_EXCEPTION).done


# ---- ProcessPoolExecutor

def test_workers_are_as_many_as_asked_for(gate: str) -> None:
    with ProcessPool(3) as executor:
        blocked = [begin(executor, gate) for _ in range(3)]
        fourth = executor.submit(pid)
        time.sleep(0.05)
        assert not fourth.running()
        open_gate(gate)
        assert [future.result(TIMEOUT) for future in blocked] == [gate] * 3
        assert fourth.result(TIMEOUT) != os.getpid()
