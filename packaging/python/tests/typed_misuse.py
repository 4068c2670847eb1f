# SPDX-License-Identifier: MIT
"""Read by mypy --strict, not run: every line that is marked must be an error, and no other one."""
import freehold
from freehold import ProcessPool


def work(number: int, text: str = "") -> float:
    return number + len(text)


with ProcessPool(function=work) as pool:
    pool("three")  # wrong
    pool(3, 4)  # wrong
    whole: int = pool(3)  # wrong
    pool.submit(work, "three")  # wrong
    future = pool.submit(work, 3)
    word: str = future.result()  # wrong
    pool.map(work, [1], buffersize="2")  # wrong
    pool.map(work, 1)  # wrong
ProcessPool(run_timeout="1")  # wrong
ProcessPool(workers=3)  # wrong
freehold.preload(True)  # wrong
freehold.preloaded()  # wrong


async def in_a_loop() -> None:
    await pool.acall("three")  # wrong
    await pool.arun(work, number="three")  # wrong
    async for result in pool.amap(work, 3):  # wrong
        print(result)
