"""Mend what is mechanical in a SKILL.md: bytes, fences, values. What is not named stays byte for byte."""
