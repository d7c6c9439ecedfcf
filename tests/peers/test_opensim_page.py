"""The tasks of docs/coming_from.md in OpenSim, whose results the page compares with kinegrad's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_docs import BLOCK, ROOT, run_blocks

osim = pytest.importorskip("opensim", exc_type=ImportError)


def test_tasks_in_opensim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    osim.Logger.setLevelString("Off")
    text = (ROOT / "docs" / "coming_from.md").read_text(encoding="utf-8")
    section = text[text.index("\n## OpenSim\n") :]
    assert len(BLOCK.findall(section)) == 2
    assert run_blocks(section, "coming_from.md") == (0, 0)
