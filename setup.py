"""Builds the C++ libraries with the package; everything else is in pyproject.toml."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
PACKAGE = ROOT / "src" / "warpsmith"


def load_builder():
    """toolchains/native.py, without importing the package (whose dependencies may not be there yet)."""
    spec = importlib.util.spec_from_file_location("warpsmith_native", PACKAGE / "toolchains" / "native.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


native = load_builder()


class BuildLibraries(build_ext):
    """Our libraries have no Python interface: plain names, plain C++ compiler, all built in one go."""

    def get_ext_filename(self, fullname: str) -> str:
        # setuptools asks with the whole dotted name, or with its last part
        by_name = {extension_name(library): library.file for library in native.LIBRARIES}
        for name, file in by_name.items():
            if fullname == name:
                return os.path.join("warpsmith", file)
            if fullname == name.rpartition(".")[2]:
                return os.path.basename(file)
        return super().get_ext_filename(fullname)

    def build_extension(self, ext: Extension) -> None:
        try:
            native.build(PACKAGE, ROOT / "build" / "native")
        except native.BuildError as error:
            raise SystemExit(f"warpsmith: the C++ libraries cannot be built: {error}") from None
        built = next(PACKAGE / library.file for library in native.LIBRARIES if extension_name(library) == ext.name)
        target = Path(self.get_ext_fullpath(ext.name))
        if target.resolve() != built:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(built, target)

    def copy_extensions_to_source(self) -> None:
        """Nothing to do for an editable install: they are built in place."""


def extension_name(library) -> str:
    return "warpsmith." + library.file.removesuffix(".so").replace("/", ".")


def extension(library) -> Extension:
    sources = sorted((PACKAGE / library.folder).glob("*.cpp"))
    return Extension(extension_name(library), [str(source.relative_to(ROOT)) for source in sources])


setup(
    ext_modules=[extension(library) for library in native.present(PACKAGE)],
    cmdclass={"build_ext": BuildLibraries},
)
