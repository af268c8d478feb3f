"""The client for asyncio, with the methods of the other one, so that all tests of that one run with both."""

import asyncio
import threading

import weir

_loop = asyncio.new_event_loop()
threading.Thread(target=_loop.run_forever, daemon=True).start()


def run(coroutine):
    return asyncio.run_coroutine_threadsafe(coroutine, _loop).result()


class _Waiting:
    """Waits for every coroutine that a method returns."""

    def __init__(self, of):
        self._of = of

    def __getattr__(self, name):
        found = getattr(self._of, name)
        return (lambda *args, **options: run(found(*args, **options))) if asyncio.iscoroutinefunction(found) else found


class Blocking(_Waiting):
    def __init__(self, *args, **options):
        super().__init__(weir.AsyncClient(*args, **options))
        self.counters = _Waiting(self._of.counters)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def reserve(self, *args, **options):
        hold, verdict = run(self._of.reserve(*args, **options))
        return _Waiting(hold), verdict

    def hold(self, id):
        return _Waiting(self._of.hold(id))
