"""The project as people install it: a wheel in a virtual environment of its own, without a network."""

import subprocess
import sys
import sysconfig
from pathlib import Path

from gradingsite.state import ROOT


def build(folder: Path) -> Path:
    """The wheel, built with what the tests' environment has."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def install(wheel: Path, environment: Path) -> Path:
    """Install the wheel into a new virtual environment, and return the path of the command.

    Its dependencies are those of the tests' environment, which a .pth file adds to the path.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    options = ["--offline", "--no-deps", "--quiet", "--python", environment / "bin" / "python"]
    subprocess.run([sys.executable, "-m", "uv", "pip", "install", *options, wheel], check=True)
    packages(environment).joinpath("dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return environment / "bin" / "gradingsite"


def packages(environment: Path) -> Path:
    """The folder of an environment's packages."""
    return next(environment.glob("lib/python*/site-packages"))


def environ(home: Path, **variables: str) -> dict[str, str]:
    """The environment of a person who has set nothing."""
    return {"HOME": str(home), "PATH": "/usr/bin:/bin", **variables}
