# SPDX-License-Identifier: MIT
"""freehold.ProcessPool in an event loop, which goes on while calls run."""
import asyncio
import itertools
import pathlib
import threading
import time
from collections.abc import AsyncIterator

import pytest

from freehold import ProcessPool, WorkerDied


def double(number: int) -> int:
    return 2 * number


def add(a: int, b: int) -> int:
    return a + b


def fail(number: int) -> int:
    raise LookupError(number)


def test_acall_and_arun_return_results_and_raise() -> None:
    async def work() -> None:
        async with ProcessPool(2, function=double) as pool:
            assert await asyncio.gather(*(pool.acall(number) for number in range(8))) == [2 * number for number in range(8)]
            assert await pool.arun(add, 1, b=2) == 3
            with pytest.raises(LookupError):
                await pool.arun(fail, 1)
        async with ProcessPool(1) as pool:
            with pytest.raises(TypeError, match="no function"):
                await pool.acall(1)
    asyncio.run(work())


def test_loop_goes_on_while_a_call_runs_and_while_the_pool_ends() -> None:
    async def work() -> int:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1
        ticking = asyncio.create_task(tick())
        async with ProcessPool(1) as pool:
            await pool.arun(time.sleep, 0.3)
            during_call = ticks
            pool.submit(time.sleep, 0.3)
        ticking.cancel()
        assert during_call > 2
        return ticks - during_call
    assert asyncio.run(work()) > 2


def test_amap_is_ordered_and_bounded() -> None:
    async def work() -> None:
        async with ProcessPool(2) as pool:
            taken = itertools.count()
            results = pool.amap(double, taken, buffersize=3)
            assert [await anext(results) for _ in range(6)] == [0, 2, 4, 6, 8, 10]
            assert next(taken) <= 6 + 3
            await results.aclose()  # type: ignore[attr-defined]
            assert [result async for result in pool.amap(add, [1, 2, 3], [4, 5])] == [5, 7]
            assert [result async for result in pool.amap(double, [])] == []
            assert [result async for result in pool.amap(double, range(50))] == [2 * number for number in range(50)]
            for size, error in ((0, ValueError), ("x", TypeError)):
                with pytest.raises(error):
                    await anext(pool.amap(double, [1], buffersize=size))  # type: ignore[arg-type]
    asyncio.run(work())


def test_amap_takes_asynchronous_iterables() -> None:
    async def numbers() -> "AsyncIterator[int]":
        for number in itertools.count():
            await asyncio.sleep(0)
            yield number

    async def work() -> None:
        async with ProcessPool(2) as pool:
            assert [result async for result in pool.amap(add, numbers(), [10, 20, 30])] == [10, 21, 32]
    asyncio.run(work())


def test_amap_that_fails_or_is_left_cancels_the_rest(tmp_path: pathlib.Path) -> None:
    async def work() -> None:
        async with ProcessPool(1) as pool:
            with pytest.raises(LookupError):
                async for _ in pool.amap(fail, range(10)):
                    pass
            paths = [str(tmp_path / str(number)) for number in range(20)]
            results = pool.amap(make_slowly, paths, buffersize=10)
            await anext(results)
            await results.aclose()  # type: ignore[attr-defined]
        assert len(list(tmp_path.iterdir())) < 10
    asyncio.run(work())


def make_slowly(path: str) -> None:
    time.sleep(0.02)
    pathlib.Path(path).touch()


def test_a_cancelled_task_cancels_a_call_that_waits(tmp_path: pathlib.Path) -> None:
    mark, gate = tmp_path / "mark", tmp_path / "gate"

    async def work() -> None:
        async with ProcessPool(1) as pool:
            running = asyncio.create_task(pool.arun(wait_for, str(gate)))
            waiting = asyncio.create_task(pool.arun(make_slowly, str(mark)))
            await asyncio.sleep(0.1)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            gate.touch()
            await running
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(pool.arun(time.sleep, 0.5), 0.05)
    asyncio.run(work())
    assert not mark.exists()


def wait_for(path: str) -> None:
    while not pathlib.Path(path).exists():
        time.sleep(0.005)


def test_run_in_executor_and_death() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        async with ProcessPool(1) as pool:
            assert await loop.run_in_executor(pool, double, 4) == 8
            with pytest.raises(WorkerDied):
                await pool.arun(exit, 3)
    asyncio.run(work())
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("freehold") and thread.is_alive()]
