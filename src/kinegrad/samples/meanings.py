"""What the coordinates of the sample models mean: which way is positive, in the words of their field.

Of human43, at q = 0 the body stands upright facing +y of the world, x to its right, z up.
"""

from __future__ import annotations

from collections.abc import Mapping

from kinegrad.model import Model

__all__ = ["coordinate_meanings"]

_RIGHT = {
    "pelvis": ("pelvis side down", "up"),
    "hip.z": ("medial rotation", "lateral"),
    "hip.y": ("adduction", "abduction"),
    "hip.x": ("extension", "flexion"),
    "knee": ("flexion", "extension"),
    "ankle.x": ("plantar flexion", "dorsiflexion"),
    "ankle.y": ("inversion", "eversion"),
    "toes": ("flexion", "extension"),
    "clavicle.y": ("depression", "elevation"),
    "clavicle.z": ("protraction, forwards", "retraction"),
    "shoulder.z": ("medial rotation", "lateral"),
    "shoulder.y": ("adduction", "abduction"),
    "shoulder.x": ("extension", "flexion"),
    "elbow.x": ("extension", "flexion"),
    "elbow.z": ("supination", "pronation"),
    "wrist.x": ("ulnar deviation", "radial"),
    "wrist.y": ("flexion", "extension"),
}
_MIDDLE = {
    "pelvis.tz": ("body up", "down"),
    "pelvis.ty": ("body forwards", "backwards"),
    "pelvis.tx": ("body to its right", "to its left"),
    "pelvis.rx": ("body leans forwards", "backwards"),
    "pelvis.rz": ("body turns to its left", "to its right"),
    "lumbar": ("trunk bends to its right", "to its left"),
    "neck.y": ("head bends to its right", "to its left"),
    "neck.z": ("head turns to its left", "to its right"),
    "neck.x": ("flexion, nods", "extension"),
}
_MIRRORED = (".y", ".z", "pelvis")  # of the left side, with the other sign
_SAGITTAL = {
    "trunk.tz": ("body up", "down"),
    "trunk.tx": ("body forwards", "backwards"),
    "trunk.ry": ("trunk bends forwards", "backwards"),
    "hip": ("flexion", "extension"),
    "knee": ("flexion", "extension"),
    "ankle": ("dorsiflexion", "plantar flexion"),
    "shoulder": ("flexion", "extension"),
    "elbow": ("flexion", "extension"),
}


def _left() -> dict[str, tuple[str, str]]:
    return {name: (pair[1], pair[0]) if name.endswith(_MIRRORED) else pair for name, pair in _RIGHT.items()}


_MEANINGS: dict[str, dict[str, tuple[str, str]]] = {
    "human43": _MIDDLE
    | {f"right_{name}": pair for name, pair in _RIGHT.items()}
    | {f"left_{name}": pair for name, pair in _left().items()},
    "human_sagittal": _SAGITTAL,
}


def coordinate_meanings(model: Model) -> Mapping[str, tuple[str, str]]:
    """What a positive and what a negative value of each coordinate is; empty where nothing is known beyond its axis.

    Examples
    --------
    >>> from kinegrad.samples import human43
    >>> coordinate_meanings(human43())["right_knee"]
    ('flexion', 'extension')
    """
    known = _MEANINGS.get(model.name, {})
    return known if set(known) == set(model.coordinate_names) else {}
