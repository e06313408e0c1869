"""YAML 1.2 as the ``yaml`` package of npm (2.x, strict) and Bun's parser read it.

Both follow the specification closely, where libyaml (see ``tree``) is of YAML 1.1 and goes its own
ways. Where the two differ from each other is said by ``bun``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from skillpack.validate.clients.yaml12.blocks import BlockReader
from skillpack.validate.clients.yaml12.scanner import Refused
from skillpack.validate.tree import Document, Fault, read_yaml

_CHARACTER = r"[ -~\xa1-\u1fff\u2010-\u2027\u2030-\ud7ff\uff00-\uffef\U00010000-\U000effff]"
_WORDS = rf"[\w(/$.](?:(?![:#]){_CHARACTER}|:(?=[!-~])|(?<! )#)*"
_VALUE = rf"""(?:{_WORDS}|"(?:(?!["\\]){_CHARACTER})*"|'(?:(?!'){_CHARACTER})*')"""
_TAME = re.compile(
    rf"(?: *[A-Za-z][\w-]*:(?: +{_VALUE})?(?:\n|\Z)| *- +{_VALUE}(?:\n|\Z)| +{_WORDS}(?:\n|\Z)| *(?:#{_CHARACTER}*)?\n"
    rf"|[A-Za-z][\w-]*: +[|>][-+]? *\n(?:(?: {_CHARACTER}*)?\n)*(?: {_CHARACTER}*\Z|(?![ \n])))*",
    re.ASCII,
)
"""Lines so plain that libyaml reads them in the same way, if it takes them at all; and it is faster."""


def read_yaml12(text: str, libyaml: Callable[[str], Document] = read_yaml, *, bun: bool = False) -> Document:
    """Return the reading of ``text`` by npm's ``yaml``, or by Bun. Never raises: a fault is part of the answer.

    ``libyaml`` is asked about plain texts.
    """
    if _TAME.fullmatch(text):
        document = libyaml(text)
        if document.fault is None and document.duplicate is None:
            return document
    reader = BlockReader(text, bun)
    document = Document(text, documents=0)
    try:
        for root in reader.documents():
            document.documents += 1
            document.root = document.root or root
            document.odd = bool(reader.anchors)
    except Refused as refused:
        line, column = reader.place(refused.at)
        return Document(text, fault=Fault(line, column, refused.problem, refused.rule))
    return document
