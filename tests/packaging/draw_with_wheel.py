"""Draws a timeline with an installed wheel and its extra: draw_with_wheel.py OUT.svg"""

import sys
from pathlib import Path
from xml.etree import ElementTree

import speclib

path = Path(sys.argv[1])
speclib.timeline(*speclib.compare("pearl", c=5, alpha=0.8, tokens=12)).save(path)
assert ElementTree.parse(path).getroot().tag.endswith("svg")
print(path.resolve())
