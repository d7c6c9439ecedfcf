"""A motion that plays on a page: limbs, boxes and arrows in space, drawn by a few lines of script inside the page.

The page needs nothing from elsewhere: places are numbers in it, rounded to a tenth of a millimetre, and a canvas shows
them in parallel projection, the nearest last.  Readers can stop it, go through it by hand, slow it down, and turn it;
names appear beside the pointer, or where a finger taps.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.errors import InputError
from kinegrad.kinematics import forward_kinematics
from kinegrad.model import Model

__all__ = ["Arrow", "Block", "Limb", "Scene", "animation", "motion_scene", "skeleton"]

Array = NDArray[np.float64]
SAME_POINT = 1e-6  # m
RIGHT, LEFT, MIDDLE = "#c4553b", "#2f6fab", "#4a5a6a"
DIGITS = 4
FEW = 4  # joints: links of small mechanisms take turns in colour
SLENDER = 0.025  # thickness of limbs of a model, of what it reaches over
FRAMES = 181  # at most, of a motion that is shown; straight lines between them
CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])


@dataclass(frozen=True)
class Block:
    """A box that moves along: its corners at each time, (m, 8, 3), m, x first, then y, then z; and its colour."""

    corners: Array
    colour: str = "#b8893b"

    @classmethod
    def at(cls, centre: ArrayLike, size: ArrayLike, turn: ArrayLike | None = None, colour: str = "#b8893b") -> Block:
        """A box of a size (3,) around centres (m, 3), along the world's axes or turned by (m, 3, 3).

        >>> Block.at([[0, 0, 1]], [0.2, 0.2, 0.4]).corners[0, 0].tolist()
        [-0.1, -0.1, 0.8]
        """
        middle = np.asarray(centre, dtype=float)
        local = CORNERS * np.asarray(size, dtype=float)
        if turn is not None:
            local = np.einsum("mij,kj->mki", np.asarray(turn, dtype=float), local)
        return cls(middle[:, None] + local, colour)


@dataclass(frozen=True)
class Arrow:
    """An arrow that moves along: where it starts, (m, 3), m, and what it is, (m, 3), in metres on the page."""

    start: Array
    vector: Array
    colour: str = "#7a3fa0"


class Limb(NamedTuple):
    """A thick line between two points of a scene, by number: m, a colour, and a name."""

    start: int
    end: int
    thickness: float
    colour: str
    name: str = ""


@dataclass(frozen=True)
class Scene:
    """What is shown, at times t, (m,), s.

    Attributes
    ----------
    points : array, shape (m, p, 3)
        Places, m.
    limbs : sequence of Limb
        From which point to which, how thick, m, the colour, and the name.
    balls : sequence of (int, float, str)
        Point, radius, m, and colour: a head.
    trails : sequence of (int, str)
        Points whose paths are drawn.
    azimuth, elevation : float
        Where the viewer is, degrees: 0, 0 on the world's x axis; 90, 0 on y.
    up : str
        The world's axis that is up on the page, "z" or "y".
    ground : float, optional
        The height of the ground, m.
    """

    t: Array
    points: Array
    limbs: Sequence[Limb]
    balls: Sequence[tuple[int, float, str]] = ()
    blocks: Sequence[Block] = ()
    arrows: Sequence[Arrow] = ()
    trails: Sequence[tuple[int, str]] = ()
    azimuth: float = 60.0
    elevation: float = 12.0
    up: str = "z"
    ground: float | None = None
    marks: Mapping[str, float] = field(default_factory=dict)  # names of times: where phases begin

    def __post_init__(self) -> None:
        m = len(self.t)
        if m < 2 or self.points.ndim != 3 or self.points.shape[0] != m or self.points.shape[2] != 3:
            raise InputError(f"`points` has shape {self.points.shape}; expected ({m}, p, 3), from two times on")
        if not np.isfinite(self.points).all():
            raise InputError("`points` has numbers that are not finite; expected places, m")


def skeleton(model: Model, q: ArrayLike, *, thickness: float = 0.05) -> tuple[Array, list[Limb], dict[str, int]]:
    """Points and limbs of a model in postures q, (m, nq).

    A limb goes from a joint to each joint, frame and far end that its link carries; one that carries none, to twice as
    far as its centre of mass, or to the particle that it is.

    Returns
    -------
    points : array, shape (m, p, 3)
    limbs : list
        As :class:`Scene` has them; what is called right is red, left blue.
    names : dict of str to int
        Points by name: links' own frames, and frames.

    Examples
    --------
    >>> from kinegrad import samples
    >>> points, limbs, names = skeleton(samples.two_link(), [[0.0, 0.0]])
    >>> points[0, names["forearm"]].round(12).tolist(), len(limbs)
    ([0.8, 0.0, 0.0], 2)
    """
    poses = forward_kinematics(model, q).transform
    joints = poses @ np.linalg.inv(model.tip)
    places: list[Array] = []
    names: dict[str, int] = {}
    own = {*model.link_names, *model.frames}  # a joint may be called as the link that it moves
    limbs: list[Limb] = []

    def point(place: Array) -> int:
        for k, other in enumerate(places):
            if np.abs(other - place).max() < SAME_POINT:
                return k
        places.append(place)
        return len(places) - 1

    sided = any(link.startswith(("right", "left")) for link in model.link_names)
    children: dict[int, list[int]] = {i: [] for i in range(model.n)}
    for i, parent in enumerate(model.parents.tolist()):
        if parent >= 0:
            children[parent].append(i)
    for i, link in enumerate(model.link_names):
        start = point(joints[:, i, :3, 3])
        ends = {link: poses[:, i, :3, 3]}
        hinged = [k for k in children[i] if model.joints[k].kind != "prismatic"]  # what slides is nowhere fixed in it
        ends |= {model.joint_names[k]: joints[:, k, :3, 3] for k in hinged}
        for name, frame in model.frames.items():
            if frame.link == link:
                ends[name] = (poses[:, i] @ frame.placement)[:, :3, 3]
        if all(np.abs(end - joints[:, i, :3, 3]).max() < SAME_POINT for end in ends.values()) and model.mass[i] > 0:
            times = 2 if model.inertia[i].any() else 1  # a particle is where its link ends
            far = poses[:, i] @ np.append(times * model.com[i], 1.0)
            ends[f"{link} end"] = far[:, :3]
        for name, end in ends.items():
            index = point(end)
            if name not in own or name == link or name in model.frames:
                names.setdefault(name, index)
            if index != start and not any({start, index} == {x.start, x.end} for x in limbs):
                colour = _colour(link) if sided or model.n > FEW else (LEFT, RIGHT)[i % 2]
                limbs.append(Limb(start, index, thickness, colour, link))
    return np.stack(places, axis=1), limbs, names


def _colour(link: str) -> str:
    return RIGHT if link.startswith("right") else LEFT if link.startswith("left") else MIDDLE


def motion_scene(model: Model, t: ArrayLike, q: ArrayLike, **how: Any) -> Scene:
    """A scene of a model that moves: of coordinates q, (m, nq), at times t, (m,), s, some if there are very many.

    `how` are attributes of :class:`Scene`; without `up` it is against gravity.

    Examples
    --------
    >>> from kinegrad import samples
    >>> scene = motion_scene(samples.two_link(), [0.0, 1.0], [[0.0, 0.0], [0.5, 0.1]])
    >>> scene.up, scene.limbs[1].name
    ('y', 'forearm')
    """
    times, postures = np.asarray(t, dtype=float), np.asarray(q, dtype=float)
    chosen = np.unique(np.linspace(0, len(times) - 1, min(len(times), FRAMES)).round().astype(int))
    points, limbs, _ = skeleton(model, postures[chosen])
    size = float(np.ptp(points.reshape(-1, 3), axis=0).max()) or 1.0
    limbs = [limb._replace(thickness=SLENDER * size) for limb in limbs]
    up = "y" if np.abs(model.gravity).argmax() == 1 else "z"
    return Scene(times[chosen], points, limbs, **({"up": up} | how))


def animation(scene: Scene, label: str, caption: str, *, height: int = 460) -> str:
    """The scene as a figure of a page, HTML: `label` and `caption` are HTML, as of :meth:`Page.figure`."""
    data = _plain(scene)
    alt = escape(f"{label}: an animation of a motion of {scene.t[-1] - scene.t[0]:.3g} s", quote=True)
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")  # no tag within
    identity = f"scene{zlib.crc32(text.encode())}"
    return (
        f'<figure class="animation" id="{identity}"><canvas role="img" aria-label="{alt}" style="width:100%;'
        f'height:{height}px;display:block;background:var(--canvas,#f7f9fb);touch-action:pan-y;cursor:grab"></canvas>'
        '<div style="display:flex;gap:.6rem;align-items:center;font:14px system-ui,sans-serif;padding:.4rem 0">'
        '<button type="button" style="width:5rem">pause</button><input type="range" min="0" max="1" step="0.001" '
        'value="0" aria-label="time" style="flex:1;min-width:4rem">'
        '<output style="width:4.2rem;font-variant-numeric:tabular-nums">'
        '</output><select aria-label="speed"><option value="1">1 ×</option><option value="0.5">½ ×</option>'
        '<option value="0.2">⅕ ×</option></select></div>'
        f"<figcaption><b>{label}.</b> {caption} Drag to turn it; point at a part for its name.</figcaption>"
        f"<noscript><p>The animation needs scripts; the figures of this page do not.</p></noscript>"
        f"<script>(function(){{const root=document.getElementById('{identity}');const scene={text};\n{SCRIPT}}})();"
        "</script></figure>"
    )


def _plain(scene: Scene) -> dict[str, Any]:
    """The scene as numbers for the script, with z up."""
    turn = np.eye(3) if scene.up == "z" else np.array([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]])

    def numbers(x: Array) -> list[Any]:
        return np.round(x @ turn.T, DIGITS).tolist()  # type: ignore[no-any-return]

    every = [scene.points.reshape(-1, 3), *(block.corners.reshape(-1, 3) for block in scene.blocks)]
    corners = np.concatenate(every) @ turn.T
    low, high = corners.min(axis=0), corners.max(axis=0)
    if scene.ground is not None:
        low[2] = min(low[2], scene.ground)
    return {
        "t": np.round(scene.t - scene.t[0], 5).tolist(),
        "points": numbers(scene.points),
        "limbs": [list(limb) for limb in scene.limbs],
        "balls": [list(ball) for ball in scene.balls],
        "blocks": [{"corners": numbers(block.corners), "colour": block.colour} for block in scene.blocks],
        "arrows": [
            {"start": numbers(arrow.start), "vector": numbers(arrow.vector), "colour": arrow.colour}
            for arrow in scene.arrows
        ],
        "trails": [list(trail) for trail in scene.trails],
        "middle": MIDDLE,
        "view": [scene.azimuth, scene.elevation],
        "ground": scene.ground,
        "marks": {name: float(time) for name, time in scene.marks.items()},
        "centre": ((low + high) / 2).round(DIGITS).tolist(),
        "size": float(np.linalg.norm(high - low).round(DIGITS)) or 1.0,
        "extent": (high - low).round(DIGITS).tolist(),
        "pivots": _pivots(scene),
    }


def _pivots(scene: Scene) -> list[list[float]]:
    """Where limbs of a machine are held by the world: points that stay, and how thick they are drawn, m."""
    moved = np.ptp(scene.points, axis=0).max(axis=-1)
    held = {limb.start: limb.thickness for limb in scene.limbs if moved[limb.start] < SAME_POINT}
    return [[point, thickness] for point, thickness in held.items()] if scene.ground is None else []


SCRIPT = r"""
const canvas=root.querySelector('canvas'),ink=canvas.getContext('2d'),[button]=root.getElementsByTagName('button');
const slider=root.querySelector('input'),shown=root.querySelector('output'),speed=root.querySelector('select');
const T=scene.t[scene.t.length-1];let [az,el]=scene.view,time=0,playing=true,last=null,wait=0;
let pointed=null;const css=getComputedStyle(root),tone=(name,usual)=>css.getPropertyValue(name).trim()||usual;
const rad=Math.PI/180,still=window.matchMedia&&matchMedia('(prefers-reduced-motion: reduce)').matches;
function camera(){const a=az*rad,e=el*rad,c=Math.cos(e),n=[c*Math.cos(a),c*Math.sin(a),Math.sin(e)],
 r=[-Math.sin(a),Math.cos(a),0],u=[n[1]*r[2]-n[2]*r[1],n[2]*r[0]-n[0]*r[2],n[0]*r[1]-n[1]*r[0]];return [r,u,n];}
function dot(a,b){return a[0]*b[0]+a[1]*b[1]+a[2]*b[2];}
function place(x){let i=0;while(i<scene.t.length-2&&scene.t[i+1]<=time)i++;
 const w=Math.min(1,Math.max(0,(time-scene.t[i])/(scene.t[i+1]-scene.t[i])));
 return (k)=>{const a=x[i],b=x[i+1],p=k===undefined?a:a[k],q=k===undefined?b:b[k];
  return [0,1,2].map(j=>p[j]+w*(q[j]-p[j]));};}
let fitted=[null];  // what the whole motion takes of the picture, seen from here
function bounds(r,u){if(fitted[0]===az+','+el)return fitted[1];const b=[1e9,-1e9,1e9,-1e9];
 const grow=(p,w)=>{const x=dot(p,r),y=dot(p,u);b[0]=Math.min(b[0],x-w);b[1]=Math.max(b[1],x+w);
  b[2]=Math.min(b[2],y-w);b[3]=Math.max(b[3],y+w);};
 for(const p of scene.points){for(const x of p)grow(x,0);for(const [i,w] of scene.balls)grow(p[i],w);}
 for(const box of scene.blocks)for(const c of box.corners)for(const x of c)grow(x,0);
 if(scene.ground!==null)grow([scene.centre[0],scene.centre[1],scene.ground],0);
 fitted=[az+','+el,b];return b;}
function draw(){const ratio=window.devicePixelRatio||1,W=canvas.clientWidth,H=canvas.clientHeight;
 if(canvas.width!==W*ratio||canvas.height!==H*ratio){canvas.width=W*ratio;canvas.height=H*ratio;}
 ink.setTransform(ratio,0,0,ratio,0,0);ink.clearRect(0,0,W,H);const [r,u,n]=camera(),e=scene.extent;
 const [left,right,low,high]=bounds(r,u),wide=right-left,tall=high-low;
 const s=0.84*Math.min(W/Math.max(wide,0.35*scene.size),H/Math.max(tall,0.35*scene.size));
 const flat=p=>[W/2+s*(dot(p,r)-(left+right)/2),H/2-s*(dot(p,u)-(low+high)/2),dot(p,n)];
 const line=(a,b,c,w)=>{ink.strokeStyle=c;ink.lineWidth=w;ink.beginPath();ink.moveTo(a[0],a[1]);ink.lineTo(b[0],b[1]);
  ink.stroke();};
 ink.lineCap='round';const mesh=tone('--grid','#dde3e9'),edge=tone('--canvas','#f7f9fb'),words=tone('--grey','#4a5a6a');
 const own=c=>c===scene.middle?words:c;
 let under=null;const near=(a,b,c,w,name)=>{  // the nearest to the viewer of what is under the pointer
  if(!pointed||!name)return;const x=b[0]-a[0],y=b[1]-a[1],l=x*x+y*y;
  const k=l?Math.max(0,Math.min(1,((pointed[0]-a[0])*x+(pointed[1]-a[1])*y)/l)):0,z=a[2]+k*(b[2]-a[2]);
  if(Math.hypot(a[0]+k*x-pointed[0],a[1]+k*y-pointed[1])<=Math.max(7,w/2)&&(!under||z>under[0]))under=[z,name];};
 if(scene.ground!==null){const g=scene.ground,R=Math.ceil(Math.max(e[0],e[1])/2/0.25)*0.25+0.5,
  x0=Math.round(scene.centre[0]/0.25)*0.25,y0=Math.round(scene.centre[1]/0.25)*0.25;
  for(let k=-R;k<=R+1e-9;k+=0.25){line(flat([x0+k,y0-R,g]),flat([x0+k,y0+R,g]),mesh,1);
   line(flat([x0-R,y0+k,g]),flat([x0+R,y0+k,g]),mesh,1);}}
 for(const [k,c] of scene.trails){ink.strokeStyle=c;ink.globalAlpha=0.8;ink.lineWidth=2;ink.beginPath();
  scene.points.forEach((p,i)=>{const f=flat(p[k]);i?ink.lineTo(f[0],f[1]):ink.moveTo(f[0],f[1]);});ink.stroke();
  ink.globalAlpha=1;}
 const items=[],at=place(scene.points);
 if(scene.ground!==null)for(const [i,j,w] of scene.limbs){const a=at(i),b=at(j);
  a[2]=b[2]=scene.ground;ink.globalAlpha=0.10;line(flat(a),flat(b),words,Math.max(2,w*s));ink.globalAlpha=1;}
 for(const [i,j,w,c,name] of scene.limbs){const a=flat(at(i)),b=flat(at(j));near(a,b,c,w*s,name);
  items.push([(a[2]+b[2])/2,()=>{line(a,b,edge,Math.max(3,w*s)+3);line(a,b,own(c),Math.max(3,w*s));}]);}
 for(const [i,w,c] of scene.balls){const a=flat(at(i));items.push([a[2],()=>{ink.fillStyle=own(c);ink.strokeStyle=edge;
  ink.lineWidth=1.5;ink.beginPath();ink.arc(a[0],a[1],w*s,0,7);ink.fill();ink.stroke();}]);}
 const faces=[[0,1,3,2],[4,5,7,6],[0,1,5,4],[2,3,7,6],[0,2,6,4],[1,3,7,5]];
 for(const box of scene.blocks){const pose=place(box.corners),c=[...Array(8).keys()].map(k=>flat(pose(k)));
  for(const f of faces){const z=f.reduce((x,k)=>x+c[k][2],0)/4;items.push([z,()=>{ink.globalAlpha=0.55;
   ink.fillStyle=box.colour;ink.strokeStyle='#5b4316';ink.lineWidth=1;ink.beginPath();
   f.forEach((k,i)=>i?ink.lineTo(c[k][0],c[k][1]):ink.moveTo(c[k][0],c[k][1]));ink.closePath();ink.fill();
   ink.globalAlpha=1;ink.stroke();}]);}}
 items.sort((a,b)=>a[0]-b[0]);for(const item of items)item[1]();
 const spot=(p,w,c)=>{ink.fillStyle=c;ink.strokeStyle=edge;ink.lineWidth=2;ink.beginPath();
  ink.arc(p[0],p[1],w,0,7);ink.fill();ink.stroke();};
 for(const [k,w] of scene.pivots)spot(flat(at(k)),Math.max(5,0.8*w*s),words);  // what the world holds
 for(const [k,c] of scene.trails)spot(flat(at(k)),8,c);
 const force=tone('--force','#7a3fa0');
 for(const arrow of scene.arrows){const p=place(arrow.start)(),d=place(arrow.vector)();
  if(Math.hypot(...d)<0.01)continue;const a=flat(p),b=flat([p[0]+d[0],p[1]+d[1],p[2]+d[2]]);
  const hue=arrow.colour==='#7a3fa0'?force:arrow.colour;
  line(a,b,hue,2.5);const t=Math.atan2(b[1]-a[1],b[0]-a[0]);ink.fillStyle=hue;ink.beginPath();
  ink.moveTo(b[0],b[1]);for(const q of [-0.4,0.4])ink.lineTo(b[0]-10*Math.cos(t+q),b[1]-10*Math.sin(t+q));ink.fill();}
 let mark='';for(const name in scene.marks)if(time>=scene.marks[name]-1e-9)mark=name;
 ink.font='15px system-ui,sans-serif';if(mark){ink.fillStyle=words;ink.fillText(mark,14,24);}
 if(under){const wide=ink.measureText(under[1]).width+16,x=Math.min(pointed[0]+12,W-wide-4);
  const y=pointed[1]>H-44||pointed[2]?pointed[1]-40:pointed[1]+16;ink.fillStyle='rgba(20,26,33,.88)';
  ink.strokeStyle='rgba(255,255,255,.4)';ink.lineWidth=1;ink.beginPath();ink.rect(x,Math.max(2,y),wide,26);ink.fill();
  ink.stroke();ink.fillStyle='#fff';ink.fillText(under[1],x+8,Math.max(2,y)+18);}
 root.dataset.name=under?under[1]:'';
 shown.textContent=time.toFixed(3)+' s';slider.value=time/T;}
function step(now){if(last!==null&&playing){const d=Math.min(0.1,(now-last)/1000);
 if(wait>0){wait-=d;if(wait<=0&&time>=T)time=0;}else{time+=d*Number(speed.value);if(time>=T){time=T;wait=0.8;}}}
 last=now;draw();requestAnimationFrame(step);}
button.onclick=()=>{playing=!playing;button.textContent=playing?'pause':'play';};
slider.oninput=()=>{time=T*Number(slider.value);playing=false;wait=0;button.textContent='play';};
let drag=null;const pointAt=e=>{const box=canvas.getBoundingClientRect(),touch=e.pointerType==='touch';
 pointed=touch&&e.type!=='pointerdown'?pointed:[e.clientX-box.left,e.clientY-box.top,touch];};
canvas.onpointerdown=e=>{drag=[e.clientX,e.clientY];pointAt(e);canvas.setPointerCapture(e.pointerId);};
canvas.onpointermove=e=>{if(drag){az-=0.5*(e.clientX-drag[0]);el=Math.max(-89,Math.min(89,el+0.5*(e.clientY-drag[1])));
 drag=[e.clientX,e.clientY];pointed=null;}else pointAt(e);};
canvas.onpointerup=canvas.onpointercancel=()=>{drag=null;};
canvas.onpointerleave=e=>{if(e.pointerType!=='touch')pointed=null;};
const start=location.hash.match(/t=([\d.]+)/);if(start){time=Math.min(T,Number(start[1])*T);playing=false;}
if(still)playing=false;button.textContent=playing?'pause':'play';requestAnimationFrame(step);
"""
