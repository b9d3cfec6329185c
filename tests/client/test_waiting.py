"""Signals and time-outs, and coroutines that block instead of suspending."""

from __future__ import annotations

import asyncio
import threading

import pytest

from plimsoll.client.waiting import Signal, TaskSignal, ThreadSignal, Timeout, run


async def wait_for(what: threading.Event, signal: Signal) -> str:
    while not what.is_set():
        await signal.wait(None)
    return "come"


def test_with_threads_a_coroutine_blocks_until_it_is_notified():
    condition, what = threading.Condition(), threading.Event()
    signal = ThreadSignal(condition)

    def notify() -> None:
        with condition:  # taken once the other thread waits
            what.set()
            signal.notify()

    with condition:
        other = threading.Thread(target=notify)
        other.start()
        assert run(wait_for(what, signal)) == "come"
    other.join()


def test_with_asyncio_all_waiting_tasks_are_woken_and_look_again():
    async def main() -> list[str]:
        what, signal = threading.Event(), TaskSignal()
        tasks = [asyncio.ensure_future(wait_for(what, signal)) for _ in range(3)]
        await asyncio.sleep(0)  # they wait
        signal.notify()
        await asyncio.sleep(0)  # they look again, and go on waiting
        assert not any(task.done() for task in tasks)
        what.set()
        signal.notify()
        return await asyncio.gather(*tasks)

    assert asyncio.run(main()) == ["come"] * 3


def test_waiting_for_a_signal_ends_by_itself_when_its_seconds_are_over():
    condition = threading.Condition()
    with condition:
        run(ThreadSignal(condition).wait(0.0))
    asyncio.run(TaskSignal().wait(0.0))


def test_what_needs_an_event_loop_is_refused_without_one():
    with pytest.raises(RuntimeError, match="without an event loop"):
        run(asyncio.sleep(0, "never"))


def test_an_error_comes_out_of_run_as_it_is():
    async def fails() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run(fails())


def test_a_timeout_without_seconds_never_ends_and_one_of_none_at_once():
    assert (Timeout(None).left(), Timeout(None).is_over) == (None, False)
    assert (Timeout(0.0).left(), Timeout(0.0).is_over) == (0.0, True)
    hour = Timeout(3600.0)
    left = hour.left()
    assert left is not None
    assert 0.0 < left <= 3600.0
    assert not hour.is_over
