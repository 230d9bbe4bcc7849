#!/usr/bin/env python3
"""Runs the unittest files test_*.py of a folder; closes with "checks: N passed, N failed"."""
import sys
import unittest

suite = unittest.defaultTestLoader.discover(sys.argv[1], pattern="test_*.py")
result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses) + len(result.skipped)
print(f"checks: {result.testsRun - failed} passed, {failed} failed")
sys.exit(1 if failed or not result.testsRun else 0)
