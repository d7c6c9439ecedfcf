"""Simulations as labelled arrays: dimensions time, batch, joint and parameter, by name, with units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kinegrad.model.units import joint_units

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = ["to_xarray"]

REPORTED = ("status", "message", "nfev", "njev", "steps")


def to_xarray(simulation: Any) -> Dataset:
    """The dataset of a :class:`Simulation` or :class:`FixedStepSimulation`.

    Variables ``q``, ``v``, ``a``, ``tau`` are over (time, joint) as in NetCDF files of trajectories, and of a design
    also ``dq_dp``, … over (time, joint, parameter); where coordinates are not joints, ``q`` is over (time, coordinate)
    and all others are over (time, speed).  A batch of states adds ``batch`` after time (``batch0``, …
    if it has several axes).  What the simulation reports is among the attributes, so that a file keeps it.
    """
    import xarray

    model, design = simulation._law.model, simulation._law.design
    axes = simulation.q.ndim - 2
    batch = ("batch",) if axes == 1 else tuple(f"batch{k}" for k in range(axes))
    coordinates: dict[str, Any] = {"time": ("time", simulation.t, {"units": "s"})}
    variables: dict[str, Any] = {}
    tangent, _, tangent_kinds = model.layout.columns("v")
    for x in ("q", "v", "a", "tau"):
        axis, names, kinds = model.layout.columns(x)
        coordinates[axis] = list(names)
        coordinates["kind" if axis == "joint" else f"{axis}_kind"] = (axis, kinds)
        slope = getattr(simulation, f"d{x}_dp")
        variables[x] = (("time", *batch, axis), getattr(simulation, x), {"units": joint_units(x, kinds)})
        if slope is not None:
            units = joint_units(x, tangent_kinds).split(" or ")
            each = {"units": " or ".join(f"{unit} per unit of the parameter" for unit in units)}
            variables[f"d{x}_dp"] = (("time", *batch, tangent, "parameter"), slope, each)
    if design is not None:
        coordinates |= {"parameter": list(design.names), "value": ("parameter", design.values)}
    report = {name: getattr(simulation, name) for name in REPORTED if hasattr(simulation, name)}
    return xarray.Dataset(variables, coordinates, {"model": model.name, **report})
