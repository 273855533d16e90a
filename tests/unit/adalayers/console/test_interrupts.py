"""Signals in a process of its own: once, twice, both at once as `timeout` sends them, and while held."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from adalayers.console import interrupts
from adalayers.console.interrupts import AGAIN_SECONDS, ANSWER, INTERRUPTED, SIGNALS, Interrupts
from tests.conftest import ROOT

PATIENCE = 50
"""Seconds: less than what would end the processes by itself."""
SCRIPT = """
import atexit, ctypes, os, subprocess, sys, time
from adalayers.console import interrupts
from adalayers.console.interrupts import Interrupts

def rest(seconds=60):
    print("ready", flush=True)
    time.sleep(seconds)

try:
    with Interrupts("interrupted; continue with: python 'a b'").listening():
        {body}
except KeyboardInterrupt:
    print("in good order", flush=True)
    sys.exit(7)
"""


@pytest.fixture
def start():
    """Start a process that listens while it runs a body; it is there once it does."""
    with contextlib.ExitStack() as stack:

        def start(body):
            streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            own = {"cwd": ROOT, "start_new_session": True}
            # Tests may run under nohup.
            own["preexec_fn"] = lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)
            argv = [sys.executable, "-c", SCRIPT.format(body=body)]
            process = subprocess.Popen(argv, **streams, **own)
            stack.enter_context(process)
            stack.callback(process.kill)
            assert process.stdout.readline() == "ready\n"
            return process

        yield start


def closing(stuck):
    """Return a body that does not end by its first signal alone."""
    return f"""try:
            rest()
        except KeyboardInterrupt:
            print("closing", flush=True)
            {stuck}"""


HELD = """with interrupts.deferred():
            rest(1)
            print("written", flush=True)
        time.sleep(60)"""
SWALLOWED = """try:
            rest()
        except BaseException:
            pass
        interrupts.raise_heard()
        time.sleep(60)"""


@pytest.mark.parametrize(
    ("body", "number", "said"),
    [
        *(("rest()", number, "in good order\n") for number in SIGNALS),
        (HELD, signal.SIGINT, "written\nin good order\n"),
        (SWALLOWED, signal.SIGTERM, "in good order\n"),
    ],
)
def test_the_first_signal_ends_what_runs_in_good_order(start, body, number, said):
    """It waits for what is held, and is raised where it is looked for, though a library swallowed it."""
    process = start(body)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (7, said, ANSWER.decode())


STUCK = {
    "in Python": "time.sleep(60)",
    "in a wait": "subprocess.run(['sleep', '60'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)",
    # A call that no signal interrupts, as those of libraries in C: a lock taken twice.
    "in C": "m = ctypes.create_string_buffer(64); lock = ctypes.CDLL(None).pthread_mutex_lock; lock(m); lock(m)",
}


@pytest.mark.parametrize(("number", "stuck"), [*zip(SIGNALS, STUCK.values(), strict=True)], ids=STUCK)
def test_a_second_signal_quits_at_once_and_says_how_to_go_on(start, number, stuck):
    process = start(closing(stuck))
    process.send_signal(number)
    assert process.stdout.readline() == "closing\n"
    time.sleep(AGAIN_SECONDS + 0.2)
    began = time.monotonic()
    process.send_signal(number)
    assert process.wait(PATIENCE) == INTERRUPTED
    assert time.monotonic() - began < 20
    err = process.stderr.read()
    assert err.splitlines()[-1] == "interrupted; continue with: python 'a b'"
    assert "Traceback" not in err


def test_a_signal_while_python_leaves_changes_neither_exit_code_nor_last_line(start):
    process = start("atexit.register(rest, 0.5)")
    for number in SIGNALS:
        process.send_signal(number)
    assert (process.wait(PATIENCE), process.stderr.read()) == (0, "")


def test_two_signals_at_once_are_one(start):
    process = start(closing("time.sleep(1); raise"))
    process.send_signal(signal.SIGTERM)
    time.sleep(0.1)  # else the system makes them one
    os.killpg(process.pid, signal.SIGTERM)
    out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (7, "closing\nin good order\n")


def test_handlers_are_put_back_and_may_be_taken_again():
    before = [signal.getsignal(number) for number in SIGNALS]
    with Interrupts("").listening():
        assert interrupts.listening() is not None
        with interrupts.insisting():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as Ray does
            time.sleep(0.2)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
    after = [signal.getsignal(number) for number in (*SIGNALS, signal.SIGALRM)]
    assert after == [*before, signal.SIG_DFL]
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert interrupts.listening() is None
    interrupts.raise_heard()
    with interrupts.deferred():
        pass


def test_outside_the_main_thread_and_under_nohup_signals_stay_as_they_are():
    found = []

    def listen():
        with Interrupts("").listening():
            found.append(interrupts.listening())

    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    assert found == [None]
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts("").listening():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
