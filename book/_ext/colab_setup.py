"""Install this course's library where PyTorch and NumPy are at home, as on Google Colab.

Nothing that is here already is changed unless it is too old for the course, and NumPy, PyTorch and
the widgets stay as they are in any case: every package is installed without its dependencies, and
only those of its dependencies that are lacking are installed after it.
"""

import base64
import binascii
import hashlib
import importlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable
from importlib.metadata import PackageNotFoundError, distribution, requires, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

# The notebook's own page draws widgets, so their version is Colab's affair, too.
LEFT_ALONE = ("numpy", "torch", "torchvision", "ipywidgets")
# The same modules under another name, with support for GPUs.
ALSO_CALLED = {"xgboost-cpu": "xgboost"}


def is_here(name: str, versions: SpecifierSet) -> bool:
    """Tell whether a package is installed, in one of the versions."""
    try:
        return versions.contains(version(name), prereleases=True)
    except PackageNotFoundError:
        return False


def unmet(requirements: Iterable[str], extras: Collection[str] = ()) -> list[Requirement]:
    """List those requirements that apply here and are not met."""
    lacking = []
    for requirement in map(Requirement, requirements):
        marker = requirement.marker
        if marker and not any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            continue
        names = {requirement.name, ALSO_CALLED.get(requirement.name, requirement.name)}
        if not any(is_here(name, requirement.specifier) for name in names):
            lacking.append(requirement)
    return lacking


def install(*packages: str) -> None:
    """Install packages and nothing else; RuntimeError with pip's own words if it cannot."""
    options = ("--quiet", "--no-deps", "--disable-pip-version-check", "--root-user-action=ignore")
    command = [sys.executable, "-m", "pip", "install", *options, *packages]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"could not install {', '.join(packages)}:\n{done.stderr}")
    importlib.invalidate_caches()


def install_lacking(requirements: Iterable[str], extras: Collection[str]) -> None:
    """Install what requirements ask for and is not here, then what that needs, and so on."""
    lacking = unmet(requirements, extras)
    while lacking:
        for kept in (requirement for requirement in lacking if requirement.name in LEFT_ALONE):
            if not is_here(kept.name, SpecifierSet()):
                raise RuntimeError(
                    f"{kept.name} is not installed here, and this cell leaves it to you, since it "
                    f"comes in several builds. Install {kept}, then run this cell again."
                )
            here = version(kept.name)
            print(f"The course asks for {kept}, and {here} is here. It is left as it is.")
        new = [requirement for requirement in lacking if requirement.name not in LEFT_ALONE]
        if new:
            install(*(f"{requirement.name}{requirement.specifier}" for requirement in new))
        lacking = unmet(needed for package in new for needed in requires(package.name) or [])


def folder_of_course() -> str | None:
    """Find the folder that binding_lib is installed from, where it is and can be edited there."""
    try:
        origin = distribution("binding_lib").read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    source = json.loads(origin or "{}")
    return source["url"] if source.get("dir_info", {}).get("editable") else None


def install_library(wheel: str, content: str, sha256: str) -> None:
    """Install the library from a wheel in base64; RuntimeError if that is damaged."""
    try:
        data = base64.b64decode(content)
    except binascii.Error:
        data = b""
    if hashlib.sha256(data).hexdigest() != sha256:
        raise RuntimeError("this notebook is damaged: download it again")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / wheel
        file.write_bytes(data)
        install("--force-reinstall", str(file))


def set_up(wheel: str, extras: list[str], content: str, sha256: str) -> None:
    """Install the library, unless it is that of a course's folder, and what it lacks."""
    if folder := folder_of_course():
        print(f"binding_lib is that of {folder}: it is left as it is.")
    else:
        install_library(wheel, content, sha256)
    install_lacking(requires("binding_lib") or [], extras)

    import torch

    from binding_lib.presets import choose_preset

    gpu = torch.cuda.is_available()
    print("device:", torch.cuda.get_device_name() if gpu else f"CPU, {os.cpu_count()} cores")
    shown = ("binding_lib", "torch", "numpy", "scikit-learn", "altair")
    print("versions:", f"Python {platform.python_version()},", end=" ")
    print(", ".join(f"{name} {version(name)}" for name in shown))
    print("preset:", choose_preset())
