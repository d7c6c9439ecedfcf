"""Branches and loops of a building block, traced.

Python's own ``if`` and ``while`` decide now; a stand-in is known at run time only.  So the source of a building block
is read once, as a syntax tree.  Its expressions stay Python, but for calls, ``and``, ``or``, ``not`` and ``a if c
else b``, which become calls of the functions below; its statements are run here, one after the other:

    if        on a number of Python: that side alone.  On a stand-in: both sides, each into a block of its own
    while     the body once, into a block that is entered again
    for       over a range: as ``while``.  Over a tuple: the body once for each element
    return, break, continue      an edge to where control goes on

Where edges meet, each variable that differs between them becomes a phi of LLVM, number by number, so that nothing
goes through memory.  A variable that the body of a loop assigns may change type from one turn to the next (0, then
0.5): while only types are asked for, the body is run until they no longer change, and they are kept for the emission.
"""

import ast
import inspect
import operator
import textwrap
import types as python_types
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types

from kinegrad._kernels.standin import (
    INT,
    Number,
    Value,
    as_type,
    check,
    emit,
    rebuild,
    stand_in,
    tracer,
    type_of,
    value,
)

_VALUE = "<value>"


class Edge(NamedTuple):
    """A way to where edges meet: the block it comes from, and the variables on it."""

    block: Any
    names: dict[str, Any]


class Mixed:
    """A variable whose type depends on the way taken.  That is no error before it is used."""

    def __init__(self, name, found):
        self.__dict__["why"] = f"{name!r} has no single type here: {' or '.join(sorted(set(map(str, found))))}"

    def __getattr__(self, attribute):
        raise TypeError(self.why)

    def _refuse(self, *args):
        raise TypeError(self.why)

    __bool__ = __iter__ = __len__ = __getitem__ = __add__ = __radd__ = __sub__ = __rsub__ = _refuse
    __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse


# --- where edges meet -------------------------------------------------------------------------------------------


def _common_type(found):
    """The type that all of these can have, or None."""
    if all(t == found[0] for t in found):
        return found[0]
    return None if None in found else tracer().typing.unify_types(*found)


def _type_or_none(x):
    try:
        return type_of(x)
    except TypeError:
        return None


def _same(x, y):
    return x is y or (type(x) is type(y) and isinstance(x, int | str) and x == y)


def _leaves(x, t):
    """The LLVM values of the numbers in x, converted to the Numba type t."""
    if isinstance(t, types.BaseTuple):
        return [leaf for e, to in zip(x, t, strict=True) for leaf in _leaves(e, to)]
    return [as_type(x, t)]


def _phis(t):
    """New phis, one for each leaf of a variable of type t; the last first, as LLVM makes them of one in memory."""
    if isinstance(t, types.BaseTuple):
        return [phi for phis in [_phis(e) for e in reversed(list(t))][::-1] for phi in phis]
    return [tracer().builder.phi(tracer().context.get_value_type(t))]


def _grown(t, leaves):
    """The stand-in of type t with these leaves, an iterator."""
    return rebuild(t, [_grown(e, leaves) for e in t]) if isinstance(t, types.BaseTuple) else stand_in(t, next(leaves))


def _link(phis, leaves, block):
    """What the phis are when control comes from this block."""
    for name, values in leaves.items():
        for phi, leaf in zip(phis[name], values, strict=True):
            phi.add_incoming(leaf, block)


def join(edges):
    """Let edges meet, go on there, and return the variables that all of them have; None if there are no edges."""
    builder = tracer().builder
    if not edges:
        return None
    if len(edges) == 1:
        builder.position_at_end(edges[0].block)
        return edges[0].names
    first = edges[0].names
    shared = [name for name in first if all(name in edge.names for edge in edges)]
    found = {name: [edge.names[name] for edge in edges] for name in shared}
    merged = {name: xs[0] for name, xs in found.items() if all(_same(x, xs[0]) for x in xs)}
    kinds = {name: _common_type([_type_or_none(x) for x in found[name]]) for name in shared if name not in merged}
    meeting = builder.append_basic_block("meeting")
    incoming = []
    for edge in edges:
        builder.position_at_end(edge.block)
        incoming.append({name: _leaves(edge.names[name], t) for name, t in kinds.items() if t is not None})
        builder.branch(meeting)
    builder.position_at_end(meeting)
    phis = {name: _phis(t) for name, t in kinds.items() if t is not None}
    for edge, values in zip(edges, incoming, strict=True):
        _link(phis, values, edge.block)
    for name, t in kinds.items():
        merged[name] = Mixed(name, map(_type_or_none, found[name])) if t is None else _grown(t, iter(phis[name]))
    return {name: merged[name] for name in shared}


def truth(x):
    """Whether x is true: True or False, or the LLVM value of what is known at run time only."""
    if not isinstance(x, Value):
        return bool(x)
    return x.v if x.t == types.boolean else emit(bool, x).v


def fork(test, yes, no):
    """Both sides of a branch, each into a block of its own; a side returns its variables, or None if it has left."""
    builder = tracer().builder
    blocks = [builder.append_basic_block(name) for name in ("then", "otherwise")]
    builder.cbranch(test, *blocks)
    edges = []
    for block, side in zip(blocks, (yes, no), strict=True):
        builder.position_at_end(block)
        names = side()
        if names is not None:
            edges.append(Edge(builder.block, names))
    return join(edges)


# --- expressions ------------------------------------------------------------------------------------------------


class Range(NamedTuple):
    """A range whose bounds may be known at run time only."""

    start: Any
    stop: Any
    step: int

    @classmethod
    def of(cls, *args):
        start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
        if not isinstance(step, int):
            raise TypeError("the step of a range must be known while tracing")
        return cls(start, stop, step)


def _length(x):
    return x.shape[0] if isinstance(x, Value) else len(x)


def _first_by(op):
    """min or max, by `op`: the first of the arguments that no other is below, or above."""

    def first_of(found, *others):
        for x in others:
            t, closer = _common_type([type_of(found), type_of(x)]), op(x, found)
            if isinstance(closer, Value):
                found = Number(t, tracer().builder.select(closer.v, as_type(x, t), as_type(found, t)))
            else:
                found = x if closer else found
        return found

    return first_of


def choose(test, yes, no):
    """yes() if test else no()"""
    known = truth(test)
    if isinstance(known, bool):
        return yes() if known else no()
    return fork(known, lambda: {_VALUE: value(yes())}, lambda: {_VALUE: value(no())})[_VALUE]


def both(first, *rest):
    """`and`, of functions that give its parts."""
    return choose(first(), lambda: both(*rest) if rest else True, lambda: False)


def either(first, *rest):
    """`or`, of functions that give its parts."""
    return choose(first(), lambda: True, lambda: either(*rest) if rest else False)


def opposite(x):
    """`not x`"""
    known = truth(x)
    return not known if isinstance(known, bool) else Number(types.boolean, tracer().builder.not_(known))


def item(x, k):
    """x[k], of a tuple too where k is known at run time only."""
    if not (isinstance(x, tuple) and isinstance(k, Value)) or type(x).__getitem__ is not tuple.__getitem__:
        return x[k]
    tr, at = tracer(), as_type(k, types.int64)
    t = _common_type([type_of(e) for e in x])
    if t is None:
        raise TypeError(f"elements of different types, {type_of(x)}, need a number known while tracing")
    if tr.context.enable_boundscheck:
        check(k, len(x))
    *found, last = (_leaves(e, t) for e in x)
    for number, leaves in reversed(list(enumerate(found))):
        here = tr.builder.icmp_signed("==", at, INT(number))
        last = [tr.builder.select(here, a, b) for a, b in zip(leaves, last, strict=True)]
    return _grown(t, iter(last))


def has_stand_ins(args):
    return any(isinstance(x, Value) or (isinstance(x, tuple) and has_stand_ins(x)) for x in args)


def call(function, *args, **kwargs):
    """A call in a building block: traced if it can be, plain Python where no stand-in takes part, else Numba's."""
    if function in _OWN:
        return _OWN[function](*args)
    plain = hasattr(function, "traced") or isinstance(function, python_types.MethodType)
    plain = plain or (isinstance(function, type) and not issubclass(function, int | float | np.generic))
    if plain or not has_stand_ins((*args, *kwargs.values())):
        return function(*args, **kwargs)
    if kwargs:
        raise TypeError(f"arguments by name cannot be passed to {function} in a building block")
    return emit(function, *args)


_OWN: dict[Any, Any] = {len: _length, range: Range.of, min: _first_by(operator.lt), max: _first_by(operator.gt)}
_HELPERS = {f"<{f.__name__}>": f for f in (call, item, choose, both, either, opposite)}


class _Expressions(ast.NodeTransformer):
    """Replace what Python would decide now."""

    def visit_Call(self, node):
        self.generic_visit(node)
        return self._helper(node, call, [node.func, *node.args], node.keywords)

    def visit_Subscript(self, node):
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Store) or isinstance(node.slice, ast.Constant | ast.Slice | ast.Tuple):
            return node
        return self._helper(node, item, [node.value, node.slice])

    def visit_BoolOp(self, node):
        self.generic_visit(node)
        parts = [self._later(part) for part in node.values]
        return self._helper(node, both if isinstance(node.op, ast.And) else either, parts)

    def visit_IfExp(self, node):
        self.generic_visit(node)
        return self._helper(node, choose, [node.test, self._later(node.body), self._later(node.orelse)])

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return self._helper(node, opposite, [node.operand]) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node):
        if len(node.ops) > 1:  # a < b < c
            left = [node.left, *node.comparators[:-1]]
            pairs = zip(left, node.ops, node.comparators, strict=True)
            pairs = [ast.copy_location(ast.Compare(a, [op], [b]), node) for a, op, b in pairs]
            return self.visit(ast.copy_location(ast.BoolOp(ast.And(), pairs), node))
        return self.generic_visit(node)

    @staticmethod
    def _helper(node, function, args, keywords=()):
        name = ast.Name(f"<{function.__name__}>", ast.Load())
        return ast.fix_missing_locations(ast.copy_location(ast.Call(name, args, list(keywords)), node))

    @staticmethod
    def _later(node):
        nothing = ast.arguments([], [], None, [], [], None, [])
        return ast.copy_location(ast.Lambda(nothing, node), node)


# --- statements -------------------------------------------------------------------------------------------------
# Each is run by `run(frame)`, which returns whether control goes on after it.


class _Plain(NamedTuple):
    code: Any

    def run(self, frame):
        exec(self.code, frame.names)
        return True


class _Return(NamedTuple):
    code: Any

    def run(self, frame):
        result = None if self.code is None else eval(self.code, frame.names)
        frame.returns.append(Edge(tracer().builder.block, {_VALUE: result}))
        return False


class _Jump(NamedTuple):
    kind: str  # "break" or "continue"

    def run(self, frame):
        frame.loops[-1][self.kind].append(frame.edge())
        return False


class _If(NamedTuple):
    test: Any
    body: list[Any]
    orelse: list[Any]

    def run(self, frame):
        test = truth(eval(self.test, frame.names))
        if isinstance(test, bool):
            return frame.run(self.body if test else self.orelse)
        before = frame.variables()

        def side(statements):
            frame.set(before)
            return frame.variables() if frame.run(statements) else None

        return frame.go_on(fork(test, lambda: side(self.body), lambda: side(self.orelse)))


class _While(NamedTuple):
    test: Any
    body: list[Any]
    assigned: list[str]
    wider: dict[Any, dict[str, Any]]  # by the types before the loop: those at its head, where they differ

    def run(self, frame):
        return self.loop(frame, lambda: truth(eval(self.test, frame.names)), lambda: None, lambda: None)

    def loop(self, frame, test, enter, advance):
        """`enter` before each turn of the body, `advance` after it."""
        before = frame.variables()
        own = {name: _type_or_none(before[name]) for name in self.assigned if name in before}
        wider = self.wider.setdefault(tuple(own.items()), {})
        while True:
            head = own | wider
            exits, after = self._turn(frame, head, test, enter, advance)
            changed = {name: t for name, t in after.items() if t != head[name]}
            if not changed:
                return frame.go_on(join(exits))
            wider.update(changed)
            frame.set(before)

    def _turn(self, frame, head, test, enter, advance):
        """The loop, with these types at its head; returns the ways out, and the types that the head should have."""
        builder = tracer().builder
        before, entry = frame.variables(), builder.block
        typed = {name: t for name, t in head.items() if t is not None}
        starts = {name: _leaves(before[name], t) for name, t in typed.items()}
        top, body, leave = (builder.append_basic_block(name) for name in ("head", "body", "leave"))
        builder.branch(top)
        builder.position_at_end(top)
        phis = {name: _phis(t) for name, t in typed.items()}
        mixed = {name: Mixed(name, [before[name], "what the loop makes of it"]) for name in head if name not in typed}
        frame.set(before | mixed | {name: _grown(t, iter(phis[name])) for name, t in typed.items()})
        known = test()
        exits = [] if known is True else [Edge(leave, frame.variables())]
        builder.cbranch(ir.IntType(1)(known) if isinstance(known, bool) else known, body, leave)
        if known is True:
            builder.position_at_end(leave)
            builder.unreachable()
        builder.position_at_end(body)
        enter()
        frame.loops.append({"break": exits, "continue": []})
        goes_on = frame.run(self.body)
        turns = frame.loops.pop()["continue"] + ([frame.edge()] if goes_on else [])
        _link(phis, starts, entry)
        if not frame.go_on(join(turns)):
            return exits, {}
        advance()
        after = frame.variables()
        settled = {name: _common_type([t, _type_or_none(after[name])]) for name, t in typed.items()}
        if settled == typed:
            _link(phis, {name: _leaves(after[name], t) for name, t in typed.items()}, builder.block)
            builder.branch(top)
        return exits, settled


class _For(NamedTuple):
    items: Any
    target: Any  # code that assigns _VALUE to the variable of the loop
    counter: str
    turns: _While

    def run(self, frame):
        items = eval(self.items, frame.names)
        if not isinstance(items, Range):
            return self._unroll(frame, items)
        builder, names = tracer().builder, frame.names
        stop, sign = as_type(items.stop, types.int64), "<" if items.step > 0 else ">"
        names[self.counter] = Number(types.int64, as_type(items.start, types.int64))

        def advance():
            names[self.counter] = names[self.counter] + items.step

        return self.turns.loop(
            frame,
            lambda: builder.icmp_signed(sign, names[self.counter].v, stop),
            lambda: self._assign(frame, names[self.counter]),
            advance,
        )

    def _unroll(self, frame, items):
        exits: list[Edge] = []
        for item in items:
            self._assign(frame, item)
            frame.loops.append({"break": exits, "continue": []})
            goes_on = frame.run(self.turns.body)
            turns = frame.loops.pop()["continue"] + ([frame.edge()] if goes_on else [])
            if not frame.go_on(join(turns)):
                return frame.go_on(join(exits))
        return frame.go_on(join([*exits, frame.edge()]))

    def _assign(self, frame, item):
        frame.names[_VALUE] = item
        exec(self.target, frame.names)


class Program:
    """A building block's source, ready to be traced."""

    def __init__(self, function):
        code = function.__code__
        definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        if not isinstance(definition, ast.FunctionDef) or definition.name != code.co_name:
            raise TypeError(f"the source of {function.__qualname__} is not that of a function of this name")
        ast.increment_lineno(definition, code.co_firstlineno - 1)
        self.signature, self.file = inspect.signature(function), code.co_filename
        self.locals = [*code.co_varnames, *code.co_cellvars]
        self.statements = self._statements(definition.body)
        free = dict(zip(code.co_freevars, (cell.cell_contents for cell in function.__closure__ or ()), strict=True))
        outside = function.__globals__ | free
        self.outside = {name: x for name, x in outside.items() if name not in self.locals} | _HELPERS

    def run(self, args, kwargs):
        """What the function returns for these stand-ins."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        frame = Frame(self, bound.arguments)
        if frame.run(self.statements):
            frame.returns.append(Edge(tracer().builder.block, {_VALUE: None}))
        result = join(frame.returns)[_VALUE]
        if isinstance(result, Mixed):
            raise TypeError(result.why.replace(repr(_VALUE), "the result"))
        return result

    def _statements(self, nodes):
        done: list[Any] = []
        plain: list[ast.stmt] = []
        for node in nodes:
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Pass):
                plain.append(node)
                continue
            if plain:
                done.append(_Plain(self._code(ast.Module(plain, []))))
                plain = []
            done.append(self._statement(node))
        return [*done, _Plain(self._code(ast.Module(plain, [])))] if plain else done

    def _statement(self, node):
        match node:
            case ast.Return():
                return _Return(node.value and self._code(ast.Expression(node.value)))
            case ast.Break() | ast.Continue():
                return _Jump(type(node).__name__.lower())
            case ast.If():
                test = self._code(ast.Expression(node.test))
                return _If(test, self._statements(node.body), self._statements(node.orelse))
            case ast.While(orelse=[]):
                return self._loop(node, self._code(ast.Expression(node.test)))
            case ast.For(orelse=[]):
                counter = f"<counter in line {node.lineno}>"
                self.locals.append(counter)
                item = ast.copy_location(ast.Name(_VALUE, ast.Load()), node)
                target = self._code(ast.Module([ast.copy_location(ast.Assign([node.target], item), node)], []))
                items = self._code(ast.Expression(node.iter))
                return _For(items, target, counter, self._loop(node, None, counter))
        what = f"{type(node).__name__.lower()}{' with else' if getattr(node, 'orelse', None) else ''}"
        raise TypeError(f"a building block cannot have: {what} (line {node.lineno} of {self.file})")

    def _loop(self, node, test, *more):
        stored = (x.id for x in ast.walk(node) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store))
        return _While(test, self._statements(node.body), [*dict.fromkeys(stored), *more], {})

    def _code(self, node):
        tree = ast.fix_missing_locations(_Expressions().visit(node))
        return compile(tree, self.file, "eval" if isinstance(node, ast.Expression) else "exec")


class Frame:
    """One run of a building block: the variables, and the edges that have left."""

    def __init__(self, program, arguments):
        self.locals, self.names = program.locals, program.outside | arguments
        self.returns: list[Edge] = []
        self.loops: list[dict[str, list[Edge]]] = []

    def run(self, statements):
        """Whether control goes on after the statements."""
        return all(statement.run(self) for statement in statements)

    def variables(self):
        return {name: self.names[name] for name in self.locals if name in self.names}

    def set(self, variables):
        for name in self.locals:
            self.names.pop(name, None)
        self.names.update(variables)

    def go_on(self, variables):
        """Go on with these variables, if there are any."""
        if variables is not None:
            self.set(variables)
        return variables is not None

    def edge(self):
        return Edge(tracer().builder.block, self.variables())
