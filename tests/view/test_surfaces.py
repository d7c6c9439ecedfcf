"""Surfaces are closed, turned outwards, and as large as their solids."""

import sys

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.view.surfaces import ARROW, capsule_between, refined, surface


def volume(mesh):
    """Of a closed surface, by the divergence theorem; positive where faces are turned outwards."""
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces], 1, 0)
    return np.einsum("ij,ij->", a, np.cross(b, c)) / 6


@pytest.mark.parametrize(
    ("solid", "expected"),
    [
        (kg.Sphere(0.5), 4 / 3 * np.pi * 0.5**3),
        (kg.Cylinder(0.3, 2.0), np.pi * 0.3**2 * 2),
        (kg.Capsule(0.3, 2.0), np.pi * 0.3**2 * 2 + 4 / 3 * np.pi * 0.3**3),
        (kg.Box((1.0, 2.0, 3.0)), 6.0),
    ],
)
def test_volumes(solid, expected):
    """A polygon of 20 corners has 1.6 % less area than its circle, and arcs lose a little more."""
    assert 0.95 * expected < volume(surface(solid)) <= expected * (1 + 1e-12)


@pytest.mark.parametrize("longest", [0.05, 0.2, 10.0])
def test_refined_surfaces_are_the_same_in_smaller_triangles(longest):
    rod = surface(kg.Capsule(0.1, 1.0))
    fine = refined(rod, longest)
    corners = fine.vertices[fine.faces]
    assert np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max() <= longest
    assert volume(fine) == pytest.approx(volume(rod), rel=1e-12)
    assert (len(fine.faces) == len(rod.faces)) == (longest == 10.0)


def test_arrow_is_turned_outwards():
    assert volume(ARROW) > 0


def test_capsule_between_any_two_points():
    rng = np.random.default_rng(1)
    for _ in range(20):
        start, end = rng.normal(size=(2, 3))
        bone = capsule_between(start, end, 0.1)
        along = (end - start) / np.linalg.norm(end - start)
        heights = (bone.vertices - start) @ along
        away = np.linalg.norm(bone.vertices - start - np.outer(heights, along), axis=1)
        np.testing.assert_allclose(
            [heights.min(), heights.max()], [-0.1, np.linalg.norm(end - start) + 0.1], atol=1e-12
        )
        np.testing.assert_allclose(away.max(), 0.1, atol=1e-12)
        assert volume(bone) > 0


def write_tetrahedron(path):
    path.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")


def test_mesh_of_a_file_scaled_and_mirrored(tmp_path):
    write_tetrahedron(tmp_path / "t.obj")
    plain = surface(kg.Mesh(tmp_path / "t.obj"))
    assert volume(plain) == pytest.approx(1 / 6)
    assert volume(surface(kg.Mesh(tmp_path / "t.obj", (-2, 1, 1)))) == pytest.approx(1 / 3)  # outside stays outside


def test_mesh_that_is_not_there(tmp_path):
    with pytest.raises(kg.InputError, match=r"mesh file '.*no.stl' does not exist"):
        surface(kg.Mesh(tmp_path / "no.stl"))


def test_mesh_that_is_none(tmp_path):
    (tmp_path / "bad.stl").write_bytes(b"solid nothing\nendsolid nothing\n")
    with pytest.raises(kg.InputError, match="mesh file"):
        surface(kg.Mesh(tmp_path / "bad.stl"))


@pytest.mark.parametrize(("module", "package"), [("trimesh", "trimesh"), ("collada", "pycollada")])
def test_a_missing_reader_of_meshes_is_a_sentence_with_the_command_to_type(tmp_path, monkeypatch, module, package):
    (tmp_path / "part.dae").write_text("<COLLADA/>")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"'{package}', which is not installed: pip install 'kinegrad\[view\]'"):
        surface(kg.Mesh(tmp_path / "part.dae"))
