"""Names of links beside the pointer: a script in the page, served or exported.

viser reports clicks on the nodes of a scene and no hovering.  Its page, though, draws with three.js, keeps the scene,
its nodes by name and the camera in one place (``__viserMutable``, which its own tests use), and runs scripts that a
server sends, as it must for plots; recordings contain them, too.  So the page itself casts the ray from the pointer.
"""

from __future__ import annotations

import json
from typing import Any

from kinegrad.model import Model
from kinegrad.view.windows import run_in_page

__all__ = ["add_names_on_hover", "hover_names"]


def hover_names(model: Model) -> dict[str, tuple[str, str]]:
    """What is said of each node of the scene: the link, and what moves it.

    Examples
    --------
    >>> from kinegrad import samples
    >>> hover_names(samples.two_link())["/body/1"]
    ('forearm', 'elbow')
    """
    names = {
        f"/body/{i}": (link, joint)
        for i, (link, joint) in enumerate(zip(model.link_names, model.joint_names, strict=True))
    }
    return {"/world": ("world", ""), **names}


def add_names_on_hover(server: Any, model: Model) -> None:
    """Send the script to all who visit the page, now or later, and to recordings."""
    text = json.dumps(hover_names(model)).replace("<", "\\u003c")
    run_in_page(server, f"const names={text};{SCRIPT}")


SCRIPT = r"""
if (window.kinegradHover) { window.kinegradHover.names = names; return; }  // a recording that begins again
const hover = window.kinegradHover = {names}, tip = document.createElement('div'), title = document.createElement('b');
const below = document.createElement('div');
tip.id = 'kinegrad-hover'; tip.setAttribute('role', 'tooltip'); tip.append(title, below);
tip.style.cssText = 'position:fixed;display:none;z-index:1000;pointer-events:none;max-width:60vw;padding:.3rem .6rem;' +
  'border-radius:.3rem;font:14px/1.35 system-ui,sans-serif;color:#fff;background:rgba(20,26,33,.88);' +
  'overflow-wrap:anywhere;border:1px solid rgba(255,255,255,.35);box-shadow:0 1px 4px rgba(0,0,0,.35)';
document.body.append(tip);
let at = null, waiting = false;
function hide() { tip.style.display = 'none'; }
function nodes(viewer) {  // three's objects of the nodes that have names
  return Object.keys(hover.names).filter(name => viewer.nodeRefFromName[name])
    .map(name => [viewer.nodeRefFromName[name], name]);
}
function drawn(thing) { for (let x = thing; x; x = x.parent) if (!x.visible) return false; return true; }
function find() {  // the name of the nearest node under the pointer
  const viewer = window.__viserMutable;
  if (!at || !viewer || !viewer.canvas || !viewer.scene || !viewer.scene.__r3f) return null;
  const box = viewer.canvas.getBoundingClientRect(), {raycaster, camera, pointer} = viewer.scene.__r3f.root.getState();
  const place = pointer.clone().set(2 * (at.x - box.left) / box.width - 1, 1 - 2 * (at.y - box.top) / box.height);
  if (Math.abs(place.x) > 1 || Math.abs(place.y) > 1) return null;
  const known = new Map(nodes(viewer));
  raycaster.setFromCamera(place, camera);
  for (const hit of raycaster.intersectObjects([...known.keys()], true)) {
    if (!hit.object.isMesh || !drawn(hit.object)) continue;
    for (let x = hit.object; x; x = x.parent) if (known.has(x)) return known.get(x);
  }
  return null;
}
function show() {
  waiting = false;
  const name = find();
  if (!name) return hide();
  const [link, joint] = hover.names[name];
  title.textContent = link;
  below.textContent = joint && joint !== link ? 'joint ' + joint : '';
  tip.style.display = 'block';
  const wide = tip.offsetWidth, tall = tip.offsetHeight, gap = at.touch ? 28 : 14;
  tip.style.left = Math.max(4, Math.min(at.x + gap, window.innerWidth - wide - 4)) + 'px';
  tip.style.top = (at.y + gap + tall < window.innerHeight && !at.touch ? at.y + gap : at.y - gap - tall) + 'px';
}
function later() { if (!waiting) { waiting = true; requestAnimationFrame(show); } }
function over(event) {  // what lies over the scene, and turning it, hide the name
  const viewer = window.__viserMutable, touch = event.pointerType === 'touch';
  const inside = viewer && viewer.canvas && (event.target === viewer.canvas || event.target.contains(viewer.canvas) ||
    (viewer.canvas.parentElement || viewer.canvas).contains(event.target));
  at = inside && (touch || !event.buttons) ? {x: event.clientX, y: event.clientY, touch} : null;
  at ? later() : hide();
}
window.addEventListener('pointermove', event => { if (event.pointerType !== 'touch') over(event); }, true);
window.addEventListener('pointerdown', event => event.pointerType === 'touch' ? over(event) : hide(), true);
document.addEventListener('pointerleave', event => { if (event.pointerType !== 'touch') { at = null; hide(); } });
setInterval(() => { if (at) later(); }, 150);  // links move under a pointer that rests
"""
