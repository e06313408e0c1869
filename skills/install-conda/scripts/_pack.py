"""Put a script under the pack's own interpreter, whatever ``python3`` is on PATH.

The same file stands in every skill's ``scripts`` folder. It must run on any Python 3, so it
uses nothing newer. ``python3`` may belong to somebody's training environment: one without the
pack, or with the real AgentJet, which also calls its package ``ajet``.
"""

import importlib.util
import json
import os
import sys

VARIABLE = "AGENTJET_SKILLS_PYTHON"
TRIED = "_AGENTJET_SKILLS_TRIED"
MEND = "pipx install 'agentjet-skills[all]' && skills install --agent all"


def _is_home():
    """Tell whether this interpreter imports the pack, and with it the pack's own ``ajet``."""
    specs = [importlib.util.find_spec(name) for name in ("skillpack", "ajet")]
    if None in specs or None in [spec.origin for spec in specs]:
        return False
    roots = [os.path.dirname(os.path.dirname(os.path.realpath(spec.origin))) for spec in specs]
    return roots[0] == roots[1]


def _records(skill):
    """Return the files in which `skills install` may have recorded the interpreter.

    First that of this copy, then those of links and of other copies: this one may have come by another way.
    """
    name = os.path.basename(skill)
    home = os.path.expanduser("~")
    beside = [os.path.dirname(skill)] + [os.path.join(home, client, "skills") for client in (".claude", ".agents")]
    found = [os.path.join(skill, ".agentjet-skills.json")]
    for folder in beside:
        found.append(os.path.join(folder, ".agentjet-skills", name + ".json"))
        found.append(os.path.join(folder, name, ".agentjet-skills.json"))
    return found


def _candidates(skill):
    """Return the interpreters that may hold the pack, best first."""
    found = [os.environ.get(VARIABLE)]
    for record in _records(skill):
        try:
            with open(record, encoding="utf-8") as stream:
                found.append(str(json.load(stream)["python"]))
        except (OSError, ValueError, KeyError, TypeError):
            pass
    home = os.path.dirname(os.path.dirname(os.path.realpath(skill)))
    if os.path.isfile(os.path.join(home, "skillpack", "__init__.py")):  # a checkout
        found.append(os.path.join(home, ".venv", "bin", "python"))
    elif os.path.basename(home) == "skillpack":  # <prefix>/lib/python3.x/site-packages/skillpack
        prefix = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(home))))
        found.append(os.path.join(prefix, "bin", "python"))
    found.append(sys.executable)
    return [python for at, python in enumerate(found) if python and python not in found[:at]]


def _mend(candidates):
    """Return the one command that makes an interpreter with the pack again."""
    for python in candidates:
        checkout = os.path.dirname(os.path.dirname(os.path.dirname(python)))
        setup = os.path.join(checkout, "bootstrap.py")
        if os.path.isfile(setup):
            return "python3 '%s' setup" % setup
    return MEND


def enter(script):
    """Return if this interpreter holds the pack; else start ``script`` again under the one that does.

    Exits with code 3 and the command that mends it if there is none.
    """
    tried = os.environ.pop(TRIED, "").split(os.pathsep)
    if _is_home():
        return
    skill = os.path.dirname(os.path.dirname(os.path.abspath(script)))
    candidates = _candidates(skill)
    for python in candidates:
        if python not in tried and os.access(python, os.X_OK):
            os.environ[TRIED] = os.pathsep.join([*tried, python])
            # -E and -s shut out PYTHONPATH and the user's site, where the real AgentJet may lie
            os.execv(python, [python, "-E", "-s", "-B", os.path.abspath(script), *sys.argv[1:]])
    sys.stderr.write(
        "error: this script needs the agentjet-skills package, and no interpreter has it\n"
        "expected: the package in one of %s\n"
        "try: %s\n" % (", ".join(candidates), _mend(candidates))
    )
    sys.exit(3)
