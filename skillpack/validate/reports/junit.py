"""The outcome as JUnit XML: a suite for each skill, a case for its rules, one for each script case."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree

from skillpack.validate.problems import SkillReport

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def document(reports: Iterable[SkillReport], fail_on: str) -> str:
    """Return the whole document as text."""
    root = ElementTree.Element("testsuites", name="skills validate")
    tests = failures = 0
    for report in reports:
        suite = ElementTree.SubElement(root, "testsuite", name=_clean(report.name))
        failed = report.failed(fail_on)
        case = ElementTree.SubElement(suite, "testcase", classname=_clean(report.name), name="rules")
        told = [
            f"{found.file}:{found.line} {found.severity} {found.message} [{found.rule}]" for found in report.problems
        ]
        if failed:
            failure = ElementTree.SubElement(case, "failure", message=_clean(told[0]))
            failure.text = _clean("\n".join(told))
        elif told:
            ElementTree.SubElement(case, "system-out").text = _clean("\n".join(told))
        for result in report.scripts:
            attributes = {"classname": report.name, "name": result.case, "time": f"{result.seconds:.3f}"}
            case = ElementTree.SubElement(suite, "testcase", {key: _clean(value) for key, value in attributes.items()})
            if not result.ok:
                ElementTree.SubElement(case, "failure", message=_clean(result.why)).text = _clean(result.command)
        bad = failed + sum(not result.ok for result in report.scripts)
        suite.set("tests", str(1 + len(report.scripts)))
        suite.set("failures", str(bad))
        tests, failures = tests + 1 + len(report.scripts), failures + bad
    root.set("tests", str(tests))
    root.set("failures", str(failures))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
