"""Force plates: a load at a moving point of the world, exactly; their files; which foot stands on which."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.errors import FileError, InputError
from kinegrad.io import StorageTable, write_storage
from kinegrad.recordings import ForcePlate, assign_links, plate_loads, plates_of, read_external_loads
from tests.recordings.test_inverse_kinematics import leg, walk

T = np.arange(5) / 10


def plate(**changes: object) -> ForcePlate:
    rng = np.random.default_rng(0)
    given = {
        "t": T,
        "force": rng.normal(size=(5, 3)),
        "point": rng.normal(size=(5, 3)),
        "torque": rng.normal(size=(5, 3)),
    }
    return ForcePlate(**{**given, "link": "shank", **changes})


def test_the_load_is_the_work_of_force_and_torque() -> None:
    """τ = −(Jᵀ F + J_ωᵀ T), J that of the point of the link which is at the centre of pressure at that instant."""
    model, names = leg()
    q, _ = walk(model, names, count=5)
    p, zero = plate(), np.zeros((5, model.nv))
    bare = model.replace(gravity=np.zeros(3))
    tau = kg.inverse_dynamics(bare, q, zero, zero, loads=plate_loads(model, q, [p, plate(link="pelvis")]))
    expected = np.zeros_like(tau)
    for k in range(5):
        for link in ("shank", "pelvis"):
            X = kg.forward_kinematics(model, q[k]).at(model, link).transform
            inside = X[:3, :3].T @ (p.point[k] - X[:3, 3])
            J = kg.jacobian(model, q[k], link=link, point=inside)
            expected[k] -= J.linear.T @ p.force[k] + J.angular.T @ p.torque[k]
    assert np.abs(tau - expected).max() < 1e-13


def test_between_samples_by_natural_cubic_splines() -> None:
    from scipy.interpolate import CubicSpline

    p, t = plate(), np.linspace(0.03, 0.37, 7)
    assert np.abs(p.at(t).force - CubicSpline(T, p.force, bc_type="natural")(t)).max() < 1e-14
    assert p.at(T) is p
    short = ForcePlate([0.0, 1.0], np.eye(3)[:2], np.zeros((2, 3)))
    assert short.at([0.5]).force.tolist() == [[0.5, 0.5, 0.0]]


def test_columns_of_opensims_examples() -> None:
    names = [f"{a}ground_force_{b}{c}" for a in ("", "1_") for b in "vp" for c in "xyz"]
    names += [f"{a}ground_torque_{c}" for a in ("", "1_") for c in "xyz"]
    values = np.arange(36.0).reshape(2, 18)
    first, second = plates_of(StorageTable([0.0, 1.0], tuple(names), values), {"ground_force_": "shank"})
    assert (first.link, second.link) == ("shank", "")
    assert second.force.tolist() == values[:, 6:9].tolist()
    assert second.torque.tolist() == values[:, 15:18].tolist()


def test_no_point_where_there_is_no_force() -> None:
    force, point = np.zeros((5, 3)), np.full((5, 3), np.nan)
    force[2], point[2] = 1.0, 0.5
    assert np.isfinite(plate(force=force, point=point).point).all()
    point[2, 1] = np.nan
    with pytest.raises(InputError, match="`point` of plate 'plate' is missing at t"):
        plate(force=force, point=point)


def test_the_nearest_foot() -> None:
    model, names = leg()
    q, _ = walk(model, names, count=5)
    at = kg.forward_kinematics(model, q).at(model, "shank").transform[:, :3, 3]
    p = plate(force=np.tile([0.0, 0.0, 300.0], (5, 1)), point=at + 0.01, link="")
    assert assign_links(model, T, q, [p])[0].link == "shank"
    assert assign_links(model, T, q, [p], ["pelvis"])[0].link == "pelvis"
    with pytest.raises(InputError, match="plate 'plate' bears no more than 20 N"):
        assign_links(model, T, q, [plate(link="")])
    with pytest.raises(InputError, match="plate 'plate' has no link"):
        plate_loads(model, q, [p])


def test_external_loads_of_opensim(tmp_path: Path) -> None:
    names = tuple(f"{a}{b}" for a in ("f_v", "f_p", "f_m") for b in "xyz")
    write_storage(tmp_path / "f.mot", StorageTable([0.0, 1.0], names, np.arange(18.0).reshape(2, 9)))
    force = (
        '<ExternalForce name="right"><applied_to_body>/bodyset/shank</applied_to_body>'
        "<force_identifier>f_v</force_identifier><point_identifier>f_p</point_identifier><torque_identifier>f_m</torque_identifier>{}</ExternalForce>"
    )
    text = (
        '<OpenSimDocument Version="40000"><ExternalLoads name="e"><objects>{}</objects><datafile>f.mot</datafile>'
        "</ExternalLoads></OpenSimDocument>"
    )
    path = tmp_path / "f.xml"
    path.write_text(text.format(force.format("") + force.format("<isDisabled>true</isDisabled>")))
    (found,) = read_external_loads(path)
    assert (found.link, found.name, found.torque[1].tolist()) == ("shank", "right", [15.0, 16.0, 17.0])
    path.write_text(text.format(force.format("<point_expressed_in_body>shank</point_expressed_in_body>")))
    with pytest.raises(FileError, match="point_expressed_in_body is 'shank'; expected ground"):
        read_external_loads(path)
    path.write_text(text.format(force.format("").replace("f_v", "g_v")))
    with pytest.raises(FileError, match="the forces have no columns 'g_vx', 'g_vy', 'g_vz'"):
        read_external_loads(path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"t": T[::-1]}, "`t` of plate 'plate' does not increase"),
        ({"force": np.zeros((4, 3))}, r"`force` of plate 'plate' has shape \(4, 3\); expected \(5, 3\)"),
        ({"force": np.full((5, 3), np.nan)}, "`force` of plate 'plate' is missing at t = 0 s"),
    ],
)
def test_refused(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        plate(**change)


def test_refused_as_loads() -> None:
    model, names = leg()
    q, _ = walk(model, names, count=4)
    with pytest.raises(InputError, match="plate 'plate' has 5 instants, and `q` has 4"):
        plate_loads(model, q, [plate()])
    with pytest.raises(InputError, match="asked for is from 0 to 1 s"):
        plate().at([0.0, 1.0])
    with pytest.raises(InputError, match="no columns of forces are found among 'a'"):
        plates_of(StorageTable([0.0], ("a",), [[1.0]]))
    names = tuple(f"f{a}{b}" for a in "vp" for b in "xyz")
    with pytest.raises(InputError, match="`links` names plate 'x'"):
        plates_of(StorageTable([0.0], names, np.ones((1, 6))), {"x": "shank"})
    with pytest.raises(InputError, match="holds a int; expected ForcePlate"):
        plate_loads(model, q, [3])
