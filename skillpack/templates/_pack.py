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
OWN = "~/.local/share/agentjet-skills"
PACKAGE = "agentjet-skills[all]"
ENVIRONMENTS = (OWN, "~/.local/share/pipx/venvs/agentjet-skills", "~/.local/share/uv/tools/agentjet-skills")


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


def _read(path):
    """Return the JSON object in a file, empty if there is none that can be read."""
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.load(stream)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _origins(skill):
    """Return where this copy came from, folders and git addresses, by its record and the locks of `npx skills`."""
    found = [record["origin"] for record in map(_read, _records(skill)) if record.get("origin")]
    project = os.path.dirname(os.path.dirname(os.path.dirname(skill)))  # of <project>/.claude/skills/<skill>
    home = os.path.expanduser("~")
    for lock in (os.path.join(project, "skills-lock.json"), os.path.join(home, ".agents", ".skill-lock.json")):
        try:
            entry = _read(lock)["skills"][os.path.basename(skill)]
            source = entry.get("sourceUrl") or entry["source"]
            if entry["sourceType"] == "local":
                source = os.path.normpath(os.path.join(os.path.dirname(lock), source))
            elif entry["sourceType"] == "github" and "//" not in source:
                source = "https://github.com/" + source
            found.append(source)
        except (AttributeError, KeyError, TypeError):
            pass
    return [str(origin) for origin in found]


def _candidates(skill):
    """Return the interpreters that may hold the pack, best first."""
    found = [os.environ.get(VARIABLE)]
    found += [str(record["python"]) for record in map(_read, _records(skill)) if record.get("python")]
    home = os.path.dirname(os.path.dirname(os.path.realpath(skill)))
    if os.path.basename(home) == "skillpack":  # <prefix>/lib/python3.x/site-packages/skillpack
        prefix = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(home))))
        found.append(os.path.join(prefix, "bin", "python"))
    checkouts = [folder for folder in [home] + _origins(skill) if os.path.isfile(os.path.join(folder, "bootstrap.py"))]
    found += [os.path.join(folder, ".venv", "bin", "python") for folder in checkouts]
    found += [os.path.join(os.path.expanduser(folder), "bin", "python") for folder in ENVIRONMENTS]
    found.append(sys.executable)
    return [python for at, python in enumerate(found) if python and python not in found[:at]]


def _mend(skill, candidates):
    """Return the one command that makes an interpreter with the pack, where `_candidates` looks for it."""
    checkouts = [os.path.dirname(os.path.dirname(os.path.dirname(python))) for python in candidates]
    for checkout in checkouts:
        setup = os.path.join(checkout, "bootstrap.py")
        if os.path.isfile(setup):
            return "python3 '%s' setup" % setup
    package = PACKAGE
    for origin in _origins(skill):
        if "//" in origin:
            package = "%s @ git+%s" % (PACKAGE, origin)
        elif "@" in origin and ":" in origin:  # git@host:owner/repository
            package = "%s @ git+ssh://%s" % (PACKAGE, origin.replace(":", "/", 1))
    return "python3 -m venv %s && %s/bin/pip install '%s'" % (OWN, OWN, package)


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
        "try: %s\n" % (", ".join(candidates), _mend(skill, candidates))
    )
    sys.exit(3)
