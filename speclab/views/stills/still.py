"""What all still pictures share: the white card, and how a notebook displays them.

Knows no numbers.
"""

from __future__ import annotations

from speclib.drawing.display import MimeBundle, notebook_forms
from speclib.drawing.svg import card


class Still:
    """A picture that does not move, on a white card.

    A subclass has ``size``, ``drawing()`` and a ``__repr__``, the picture in words.
    """

    size: tuple[int, int]  # pixels

    def drawing(self) -> str:
        """The SVG elements on the card."""
        raise NotImplementedError

    def picture(self) -> str:
        """SVG."""
        return card(self.drawing(), *self.size)

    def _repr_mimebundle_(self, **_: object) -> MimeBundle:
        return notebook_forms(self.picture(), self.size, repr(self))
