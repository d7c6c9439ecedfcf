"""Damaged files: whatever is in a file, reading it gives a sound trajectory or a KinegradError, and never a warning.

Bytes are flipped, cut, moved and replaced; texts get hostile words; archives and HDF5 files are also damaged from
within, so that checksums and structure are right and the content is not.  Files are read in a child of their own: HDF5
is a large library in C, and if it crashes the case is to be named.
"""

import io
import sys
import warnings
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest

import kinegrad as kg
from kinegrad.io import read_trajectory, write_trajectory
from tests.fuzz.cases import cases
from tests.kernels.child import child, ended

WORDS = (
    b"nan", b"inf", b"-inf", b"1_0", b"0x1p3", b"1e999", b"-1e-999", b"", b" ", b"\0", b"\r", b"\n", b"\r\n", b'"',
    b'""', b",", b";", b"\t", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", "١".encode(), "−1".encode(), b"1,5",
    b"[deg]", b"(mm)", b"[]", b"t", b"q.elbow", b"a.", b"9" * 400, b"x" * 5000, b"1e5", b"+", b"--1", b".",
    b"#", b"None", b"1j",
)  # fmt: skip
INTEGERS = (0, 1, 2, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1)
UNITS = (
    "deg",
    "rad",
    "m",
    "",
    "s",
    "furlong",
    "deg/s",
    "1",
    "deg or mm",
    "x" * 5000,
    "°",
    "\0",
    "seconds since 1970-01-01",
)


def sound(model: kg.Model) -> dict[str, list[bytes]]:
    """Files that can be read, of each kind several."""
    t, qva = np.arange(6.0), np.random.default_rng(1).normal(size=(3, 6, model.n))
    found: dict[str, list[bytes]] = {}
    folder = Path(sys.argv[2])
    for suffix in (".csv", ".npz", ".nc"):
        found[suffix] = []
        for times in (t, None):
            write_trajectory(folder / f"sound{suffix}", model, times, *qva)
            found[suffix].append((folder / f"sound{suffix}").read_bytes())
    found[".csv"].append(found[".csv"][0].replace(b"q.shoulder", b"q.shoulder [deg]").replace(b"\n", b"\r\n"))
    packed = io.BytesIO()
    np.savez_compressed(packed, q=qva[0], v=qva[1], a=qva[2].astype(np.float32), t=t.astype(int))
    found[".npz"].append(packed.getvalue())
    return found


# --- damage -----------------------------------------------------------------------------------------------------------


def piece(random: np.random.Generator, length: int) -> slice:
    """Some bytes, often few."""
    start = int(random.integers(0, length + 1))
    return slice(start, min(start + int(2 ** random.uniform(0, 12)), length))


def damage(random: np.random.Generator, content: bytes) -> bytes:
    """One to four changes of bytes."""
    data = bytearray(content)
    for _ in range(random.integers(1, 5)):
        where, other = piece(random, len(data)), piece(random, len(data))
        kind = random.integers(0, 9)
        if kind == 0 and data:
            for k in random.integers(0, len(data), random.integers(1, 9)):
                data[k] ^= 1 << int(random.integers(0, 8))
        elif kind == 1:
            del data[where.start :]
        elif kind == 2:
            del data[where]
        elif kind == 3:
            data[where.start : where.start] = data[other]
        elif kind == 4:
            data[where], data[other] = data[other], data[where]
        elif kind == 5:
            data[where] = random.bytes(where.stop - where.start)
        elif kind == 6:
            data[where.start : where.start] = WORDS[random.integers(0, len(WORDS))]
        elif kind == 7:
            size = int(random.choice([1, 2, 4, 8]))
            number = INTEGERS[random.integers(0, len(INTEGERS))] % 2 ** (8 * size)
            data[where.start : where.start + size] = number.to_bytes(size, "little")
        else:
            data[where] = bytes([int(random.choice([0, 32, 48, 255]))]) * (where.stop - where.start)
    return bytes(data)


def damage_words(random: np.random.Generator, content: bytes) -> bytes:
    """Fields and lines of a text replaced, dropped and doubled."""
    lines = [line.split(b",") for line in content.split(b"\n")]
    for _ in range(random.integers(1, 4)):
        k = int(random.integers(0, len(lines)))
        row = lines[k]
        c = int(random.integers(0, len(row)))
        kind = random.integers(0, 5)
        if kind == 0:
            row[c] = WORDS[random.integers(0, len(WORDS))]
        elif kind == 1:
            row[c] += WORDS[random.integers(0, len(WORDS))]
        elif kind == 2:
            row.insert(c, row[random.integers(0, len(row))])
        elif kind == 3 and len(row) > 1:
            del row[c]
        else:
            lines.insert(k, list(lines[random.integers(0, len(lines))]))
    return b"\n".join(b",".join(row) for row in lines)


def damage_members(random: np.random.Generator, content: bytes) -> bytes:
    """Arrays of an archive damaged, dropped, doubled and renamed, in an archive that is sound."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    for _ in range(random.integers(1, 3)):
        if not members:
            break
        k = int(random.integers(0, len(members)))
        name, data = members[k]
        kind = random.integers(0, 6)
        if kind == 0:
            members[k] = name, damage(random, data)
        elif kind == 1:
            members[k] = name, data[:128] + damage(random, data[128:])
        elif kind == 2:
            members[k] = name, damage(random, data[:128]) + data[128:]
        elif kind == 3:
            del members[k]
        elif kind == 4:
            members.append((name, data))
        else:
            members[k] = ["", "x.npy", "q", "../q.npy", "joint_names.npy", "t.npy"][random.integers(0, 6)], data
    new = io.BytesIO()
    with zipfile.ZipFile(new, "w", int(random.choice([0, 8, 12, 14]))) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return new.getvalue()


def damage_variables(random: np.random.Generator, content: bytes) -> bytes:
    """Variables and attributes of an HDF5 file replaced, in a file that is sound."""
    buffer = io.BytesIO(content)
    with h5py.File(buffer, "r+") as file:
        for _ in range(random.integers(1, 4)):
            names = [name for name in file if isinstance(file.get(name, getlink=True), h5py.HardLink)]
            name = names[random.integers(0, len(names))] if names else "q"
            kind = random.integers(0, 6)
            if kind == 0 and name in file:
                unit = UNITS[random.integers(0, len(UNITS))]
                values = [np.bytes_(unit.encode()), 3.0, [1, 2], h5py.Empty("f8"), np.array([unit.encode()] * 2)]
                file[name].attrs["units"] = values[random.integers(0, len(values))]
            elif kind == 1 and name in file:
                attribute = ["scale_factor", "add_offset", "_FillValue", "missing_value", "coordinates", "dtype"]
                values = [0.0, np.nan, 1e308, np.bytes_(b"joint"), [1.0, 2.0], h5py.Empty("f8"), np.int8(3)]
                chosen = attribute[random.integers(0, 6)], values[random.integers(0, len(values))]
                file[name].attrs[chosen[0]] = chosen[1]
            elif kind == 2 and name in file:
                for attribute in list(file[name].attrs)[: random.integers(0, 4)]:
                    del file[name].attrs[attribute]
            elif kind == 3 and name in "qva" and getattr(file.get(name), "shape", None) == (6, 2):
                file[name][...] = random.choice([np.nan, np.inf, 1e308, -1e-320, 0.0])
            elif name in file:
                del file[name]
                replace_variable(random, file, name)
    return buffer.getvalue()


def replace_variable(random: np.random.Generator, file: h5py.File, name: str) -> None:
    kind = random.integers(0, 7)
    shape = [(), (0,), (6,), (2,), (6, 2), (2, 6), (6, 2, 1), (10**9, 2)][random.integers(0, 8)]
    if kind == 0:
        file.create_group(name)
    elif kind == 1:
        file[name] = h5py.SoftLink("/nowhere")
    elif kind == 2:
        file.create_dataset(name, data=h5py.Empty("f8"))
    elif kind < 6:
        dtype = ["f8", "f4", "i8", "u1", "c16", "S5", h5py.string_dtype(), "?"][random.integers(0, 8)]
        file.create_dataset(name, shape, dtype=dtype, chunks=True if np.prod(shape) > 100 else None)


INNER = {".csv": damage_words, ".npz": damage_members, ".nc": damage_variables}


def damaged(random: np.random.Generator, suffix: str, content: bytes) -> bytes:
    inner = random.random() < 0.5
    try:
        content = INNER[suffix](random, content) if inner else content
    except Exception:  # what cannot even be damaged so
        inner = False
    return content if inner else damage(random, content)


# --- reading, in a child ----------------------------------------------------------------------------------------------


def run(suffix: str, count: int, folder: Path) -> None:
    """Read damaged files; print each case before it is tried."""
    model = kg.samples.two_link()
    files = sound(model)[suffix]
    path = folder / f"damaged{suffix}"
    good = 0
    for case in range(count):
        random = np.random.default_rng([8, len(suffix), case])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of those who damage
            path.write_bytes(damaged(random, suffix, files[random.integers(0, len(files))]))
        print(case, flush=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", kg.UnitsWarning)  # of damaged numbers
            try:
                found = read_trajectory(path, model)
            except kg.KinegradError as error:
                if not 0 < len(str(error)) < 1500:
                    raise AssertionError(f"a message of {len(str(error))} characters") from error
                continue
        good += 1
        for x in (found.q, found.v, found.a):
            assert x.dtype == np.float64
            assert x.shape == (len(found.q), 2)
            assert np.isfinite(x).all()
        assert found.t is None or (found.t.shape == (len(found.q),) and np.isfinite(found.t).all())
    print(f"{good} of {count} could be read")


SCRIPT = """
import resource, sys
from pathlib import Path
from tests.fuzz.test_files import run
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))  # a claim of more memory is an error, not a busy disk
run(sys.argv[1], int(sys.argv[3]), Path(sys.argv[2]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".npz", ".nc"])
def test_damaged_files_are_read_or_refused(tmp_path, suffix):
    count = cases(300)
    code, out, err = ended(child(SCRIPT, suffix, tmp_path, count))
    *tried, last = out.splitlines() or ["none"]
    assert code == 0, f"exit code {code} at case {last}\n{err}"
    assert len(tried) == count
    good = int(last.split()[0])
    assert 0 < good < count  # otherwise damage is too large or too small to say anything
