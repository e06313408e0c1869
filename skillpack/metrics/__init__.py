"""Metric curves: from SwanLab runs, run files on disk and console logs."""
