"""SVG to PNG, without a browser, and the fonts that takes.

resvg draws text with the fonts it is given or finds on the machine; where there are none it leaves
the text out without a word. So a font comes with a package (font-source-sans-pro), and a machine
without any font is an error. Characters that font lacks (it has Latin, Greek and Cyrillic) are
drawn with the machine's fonts; only then can two machines' bytes differ.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from speclib.errors import SpeclibError

FACES = ("SourceSansPro-Regular.ttf", "SourceSansPro-Semibold.ttf")
SCALE = 2  # pixels per unit: sharp when projected
PROBE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">'
    '<text y="16" font-family="sans-serif">{}</text></svg>'
)


@lru_cache
def fonts() -> tuple[str, ...]:
    """The packaged font's files; none when the package is missing."""
    spec = find_spec("font_source_sans_pro")
    folder = Path(spec.origin).parent / "files" if spec and spec.origin else None
    return (
        tuple(str(folder / face) for face in FACES if (folder / face).exists())
        if folder
        else ()
    )


def convert(svg: str, scale: float = SCALE, system: bool = False) -> bytes:
    try:
        from resvg_py import svg_to_bytes
    except ImportError as error:
        raise SpeclibError(
            "a PNG needs resvg-py, which is not installed: pip install resvg-py, "
            "or save .svg or .html"
        ) from error
    ours = (
        dict(
            font_files=list(fonts()),
            sans_serif_family="Source Sans Pro",
            skip_system_fonts=not system,
        )
        if fonts()
        else {}
    )
    return bytes(svg_to_bytes(svg_string=svg, zoom=scale, **ours))


@lru_cache
def has_fonts() -> bool:
    return convert(PROBE.format("A"), 1) != convert(PROBE.format(" "), 1)


def png(svg: str, scale: float = SCALE) -> bytes:
    """PNG bytes, ``scale`` pixels per SVG unit."""
    if not has_fonts():
        raise SpeclibError(
            "no font to draw text with: pip install font-source-sans-pro"
        )
    return convert(
        svg,
        scale,
        system=any(
            ord(letter) > 0x52F and not 0x1E00 <= ord(letter) < 0x2300 for letter in svg
        ),
    )
