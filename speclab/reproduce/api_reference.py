"""What the pages of the API show: both packages, read from their docstrings by pdoc.

A page is a room: a folder of a package, with all modules in it. The face of a package
is a page, too. Modules are imported for it; one that needs a library that is not there
is left out, and told.
"""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from typing import Any

from speclab.views.pages.site import ApiMember, ApiModule, ApiRoom
from speclib import paths
from speclib.errors import SpeclibError

PACKAGES = ("speclib", "speclab")
# What libraries add to classes, and what only our own rooms ask of each other.
NOT_SHOWN = ("DOOR", "model_config", "model_fields", "model_computed_fields")
OF_A_TUPLE = "Alias for field number"  # the docstring of a NamedTuple's field


def read_api() -> tuple[list[ApiRoom], list[str]]:
    """All rooms of both packages, and what was left out, each with the reason."""
    rooms: list[ApiRoom] = []
    left_out: list[str] = []
    for package in PACKAGES:
        face = import_module(package)
        names_by_room = {package: [package]}
        for module in pkgutil.walk_packages(face.__path__, f"{package}."):
            room = ".".join(module.name.split(".")[:2])
            if room == module.name and not module.ispkg:
                room = package  # a file beside the rooms
            if not module.name.endswith("__main__"):
                names_by_room.setdefault(room, []).append(module.name)

        for room, names in names_by_room.items():
            modules = _read_modules(names, left_out)
            if modules:
                rooms.append(ApiRoom(room, f"{room}.html", tuple(modules)))
    return rooms, left_out


def _read_modules(names: Iterable[str], left_out: list[str]) -> list[ApiModule]:
    """Those of the modules that can be imported, in this order."""
    modules = []
    for name in names:
        try:
            modules.append(_read_module(name))
        except (ImportError, SpeclibError) as error:
            left_out.append(f"{name}: {error}")
    return modules


def _read_module(name: str) -> ApiModule:
    import pdoc.doc

    imported = import_module(name)
    for public_name in getattr(imported, "__all__", ()):
        with suppress(ImportError):  # of a library that is not there
            getattr(imported, public_name)  # a face loads what it shows when asked
    module: Any = pdoc.doc.Module(imported)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of types that pdoc cannot find out
        return ApiModule(name, module.docstring, _read_members(module.members, name))


def _read_members(members: Any, owner: str) -> tuple[ApiMember, ...]:
    """The public functions, classes and values among pdoc's members by name."""
    read = []
    for name, member in members.items():
        is_public = not name.startswith("_") and name not in NOT_SHOWN
        if is_public and member.kind != "module":
            read.append(_read_member(member, f"{owner}.{name}"))
    return tuple(read)


def _read_member(member: Any, anchor: str) -> ApiMember:
    text = member.docstring
    if text.startswith(OF_A_TUPLE):
        text = ""
    if member.kind == "function":
        head = f"{member.funcdef} {member.name}{_in_words(member.signature)}"
        return ApiMember(anchor, member.name, head, text)
    if member.kind == "class":
        own = {inner.name: inner for inner in member.own_members}
        inner_members = _read_members(own, anchor)
        return ApiMember(
            anchor, member.name, _head_of_class(member), text, inner_members
        )
    head = f"{member.name}{member.annotation_str}"
    return ApiMember(anchor, member.name, head, text)


def _head_of_class(member: Any) -> str:
    """The class as it is called to make one of it."""
    making = member.members.get("__init__")
    if making is None:
        return f"class {member.name}"
    return f"class {member.name}{_in_words(making.signature_without_self)}"


def _in_words(signature: object) -> str:
    """A signature; where a default is a file of the project, its path in it."""
    text = str(signature)
    for folder in (paths.ROOT, paths.HOME):
        text = text.replace(f"{folder}/", "").replace(str(folder), ".")
    return text
