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
    also ``dq_dp``, … over (time, joint, parameter); a batch of states adds ``batch`` after time (``batch0``, …
    if it has several axes).  What the simulation reports is among the attributes, so that a file keeps it.
    """
    import xarray

    model, design = simulation._law.model, simulation._law.design
    axes = simulation.q.ndim - 2
    batch = ("batch",) if axes == 1 else tuple(f"batch{k}" for k in range(axes))
    kinds = [joint.kind for joint in model.joints]
    coordinates: dict[str, Any] = {
        "time": ("time", simulation.t, {"units": "s"}),
        "joint": list(model.joint_names),
        "kind": ("joint", kinds),
    }
    variables: dict[str, Any] = {}
    for x in ("q", "v", "a", "tau"):
        units, slope = joint_units(x, kinds), getattr(simulation, f"d{x}_dp")
        variables[x] = (("time", *batch, "joint"), getattr(simulation, x), {"units": units})
        if slope is not None:
            each = {"units": " or ".join(f"{unit} per unit of the parameter" for unit in units.split(" or "))}
            variables[f"d{x}_dp"] = (("time", *batch, "joint", "parameter"), slope, each)
    if design is not None:
        coordinates |= {"parameter": list(design.names), "value": ("parameter", design.values)}
    report = {name: getattr(simulation, name) for name in REPORTED if hasattr(simulation, name)}
    return xarray.Dataset(variables, coordinates, {"model": model.name, **report})
