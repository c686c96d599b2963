"""`import cleanup`: a benchmark that is asked to stop ends what it started, as if it had been interrupted at the keyboard."""
import signal
import sys

signal.signal(signal.SIGTERM, lambda *_: sys.exit("cut off"))
