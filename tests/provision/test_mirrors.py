"""Where things are fetched from: asked for, or measured."""

from __future__ import annotations

from typing import Any

import pytest

from skillpack.provision.docker_choices import image_names
from skillpack.provision.mirrors import addresses, choose

DEAD = ("docker.mirrors.ustc.edu.cn", "docker.mirrors.sjtug.sjtu.edu.cn", "reg-mirror.qiniu.com")


def network(**seconds: float | None) -> dict[str, Any]:
    names = {"official": "pypi/pypi.org", "tuna": "pypi/tuna", "ustc": "pypi/ustc", "aliyun": "pypi/aliyun"}
    return {names[name]: {"reachable": value is not None, "seconds": value} for name, value in seconds.items()}


@pytest.mark.parametrize(
    ("china", "seen", "name"),
    [
        ("auto", network(official=0.3, tuna=0.1), "pypi.org"),
        ("auto", network(official=4.0, tuna=1.0, ustc=0.5), "ustc"),
        ("auto", network(official=4.0, tuna=3.0), "pypi.org"),
        ("auto", network(official=None, tuna=1.5), "tuna"),
        ("auto", network(official=None, tuna=None), "pypi.org"),
        ("auto", {}, "pypi.org"),
        ("yes", network(official=0.1, tuna=2.0, ustc=1.0), "ustc"),
        ("yes", {}, "tuna"),
        ("no", network(official=None, tuna=0.1), "pypi.org"),
    ],
)
def test_choice(china: str, seen: dict[str, Any], name: str) -> None:
    found = choose("pypi", china, seen)
    assert found["name"] == name
    assert found["reason"]


def test_registries_that_are_gone_are_not_offered() -> None:
    every = " ".join(
        addresses(["pypi", "conda", "images", "weights", "toolkit", "docker_packages", "miniforge", "github"]).values()
    )
    assert not [host for host in DEAD if host in every]


def test_image_names_exchange_the_registry_only() -> None:
    official = {"use": "ghcr.io", "mirror": False}
    mirror = {"use": "ghcr.nju.edu.cn", "mirror": True}
    assert image_names("ghcr.io/modelscope/agentjet:main", official, []) == ["ghcr.io/modelscope/agentjet:main"]
    assert [name.split("/")[0] for name in image_names("ghcr.io/a/b:c", mirror, [])] == [
        "ghcr.nju.edu.cn",
        "ghcr.io",
        "ghcr.m.daocloud.io",
    ]
    assert image_names("ghcr.io/a/b:c", official, ["own.example"])[0] == "own.example/a/b:c"
    assert image_names("registry.lab:5000/a/b", mirror, []) == ["registry.lab:5000/a/b"]
