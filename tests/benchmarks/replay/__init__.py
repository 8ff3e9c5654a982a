"""Replays a day of real traces, five minutes a step: ``python -m tests.benchmarks.replay``."""
