# SPDX-License-Identifier: MIT
"""Read by mypy --strict, not run: what a program may write."""
import asyncio
import concurrent.futures

import freehold
from freehold import ProcessPool, TooLarge, WorkerDied


def work(number: int, text: str = "") -> float:
    return number + len(text)


async def in_a_loop(pool: "ProcessPool[[int], float]") -> float:
    async with pool:
        total = await pool.acall(3) + await pool.arun(work, 3, text="x")
        async for result in pool.amap(work, [1, 2], buffersize=3):
            total += result
    return total


def use() -> None:
    freehold.preload(objects=True)
    with ProcessPool(function=work, max_workers=2, run_timeout=1.5, initializer=print, initargs=("x",)) as pool:
        direct: float = pool(3, text="x")
        future: "concurrent.futures.Future[float]" = pool.submit(work, 3)
        several: "list[float]" = list(pool.map(work, range(3), buffersize=2, chunksize=2, timeout=1.0))
        try:
            print(direct, future.result(), several, pool.stats())
        except WorkerDied as died:
            print(died.kind, died.detail)
        except TooLarge:
            pass
    executor: concurrent.futures.Executor = ProcessPool(2)
    executor.shutdown(cancel_futures=True)


async def any_function() -> None:
    async with ProcessPool(2) as pool:
        await asyncio.gather(pool.arun(work, 1), pool.arun(str.upper, "x"))
