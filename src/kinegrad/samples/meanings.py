"""What the coordinates of the sample models mean: which way is positive, in the words of their field.

Of human43, at q = 0 the body stands upright facing +y of the world, x to its right, z up.
"""

from __future__ import annotations

from collections.abc import Mapping

from kinegrad.model import Model

__all__ = ["coordinate_meanings", "missing_motion"]

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


_HUMAN = (
    _MIDDLE
    | {f"right_{name}": pair for name, pair in _RIGHT.items()}
    | {f"left_{name}": pair for name, pair in _left().items()}
)
_MEANINGS: dict[str, dict[str, tuple[str, str]]] = {
    "human43": _HUMAN,
    "human43_lumbar": _HUMAN | {"lumbar.x": ("flexion, trunk forwards", "extension")},
    "human_sagittal": _SAGITTAL,
    "human_sagittal_lumbar": {
        **{name.replace("trunk.t", "pelvis.t"): pair for name, pair in _SAGITTAL.items() if name != "trunk.ry"},
        "pelvis.ry": ("pelvis tilts forwards", "backwards"),
        "lumbar": ("flexion, trunk forwards", "extension"),
    },
}


_MISSING = {
    "human43": "no joint bends the low back forwards: lumbar bends it to the side; human43_lumbar has a joint at L5/S1",
    "human_sagittal": "no joint bends the low back: trunk is one piece; human_sagittal_lumbar has a joint at L5/S1",
}


def missing_motion(model: Model) -> str:
    """Return what a sample model cannot do that its names may suggest, and which sample can; empty for others.

    Examples
    --------
    >>> from kinegrad.samples import human_sagittal
    >>> missing_motion(human_sagittal())
    'no joint bends the low back: trunk is one piece; human_sagittal_lumbar has a joint at L5/S1'
    """
    return _MISSING.get(model.name, "") if coordinate_meanings(model) else ""


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
