"""The source of a building block, read once and run on stand-ins.

Python's own ``if`` and ``while`` decide now; what a stand-in stands for is known at run time only.  So the source is
read as a syntax tree.  Its expressions stay Python, but for what Python would decide now (``and``, ``or``, ``not``,
``a if c else b``) and for calls and elements, which become calls of the functions in ``flow.py``.  Its statements are
run here, one after the other:

    if        on a number of Python: that side alone.  On a stand-in: both sides, each into a block of its own
    while     the body once, into a block that is entered again
    for       over a range: as ``while``.  Over a tuple: the body once for each element
    return, break, continue      an edge to where control goes on

A variable that the body of a loop assigns may change type from one turn to the next (0, then 0.5).  While only types
are asked for, the body is run until they no longer change; the emission finds them settled.
"""

import ast
import copy
import inspect
import textwrap
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types

from kinegrad._kernels.compiler import flow
from kinegrad._kernels.compiler.flow import VALUE, Edge, Mixed, Range, common_type, fork, join, truth, type_or_none
from kinegrad._kernels.compiler.standin import MUTE, Number, as_type, tracer

HELPERS = {f"<{f.__name__}>": f for f in (flow.call, flow.item, flow.choose, flow.both, flow.either, flow.opposite)}


class _Expressions(ast.NodeTransformer):
    """Replace what Python would decide now."""

    def visit_Call(self, node):
        self.generic_visit(node)
        return self._helper(node, flow.call, [node.func, *node.args], node.keywords)

    def visit_Subscript(self, node):
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Store) or isinstance(node.slice, ast.Constant | ast.Slice | ast.Tuple):
            return node
        return self._helper(node, flow.item, [node.value, node.slice])

    def visit_BoolOp(self, node):
        self.generic_visit(node)
        parts = [self._later(part) for part in node.values]
        return self._helper(node, flow.both if isinstance(node.op, ast.And) else flow.either, parts)

    def visit_IfExp(self, node):
        self.generic_visit(node)
        return self._helper(node, flow.choose, [node.test, self._later(node.body), self._later(node.orelse)])

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return self._helper(node, flow.opposite, [node.operand]) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node):
        if len(node.ops) > 1:  # a < b < c
            left = [node.left, *copy.deepcopy(node.comparators[:-1])]
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
        frame.returns.append(Edge(tracer().builder.block, {VALUE: result}))
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
        own = {name: type_or_none(before[name]) for name in self.assigned if name in before}
        wider = self.wider.setdefault(tuple(own.items()), {})
        pending = [(edges, len(edges)) for edges in frame.pending()]
        while True:
            head = own | wider
            exits, after = self._turn(frame, head, test, enter, advance)
            changed = {name: t for name, t in after.items() if t != head[name]}
            if not changed:
                return frame.go_on(join(exits))
            assert tracer().builder is MUTE, f"types in a loop were settled and have changed: {changed}"
            wider.update(changed)
            frame.set(before)
            for edges, count in pending:
                del edges[count:]

    def _turn(self, frame, head, test, enter, advance):
        """The loop, with these types at its head; returns the ways out, and the types that the head should have."""
        builder = tracer().builder
        before, entry = frame.variables(), builder.block
        typed = {name: t for name, t in head.items() if t is not None}
        starts = {name: flow.leaves_of(before[name], t) for name, t in typed.items()}
        top, body, leave = (builder.append_basic_block(name) for name in ("head", "body", "leave"))
        builder.branch(top)
        builder.position_at_end(top)
        phis = {name: flow.phis_of(t) for name, t in typed.items()}
        mixed = {
            name: Mixed(name, [type_or_none(before[name]), "another after a turn"]) for name in head.keys() - typed
        }
        frame.set(before | mixed | {name: flow.grown(t, iter(phis[name])) for name, t in typed.items()})
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
        flow.link(phis, starts, entry)
        if not frame.go_on(join(turns)):
            return exits, {}
        advance()
        after = frame.variables()
        settled = {name: common_type([t, type_or_none(after[name])]) for name, t in typed.items()}
        if settled == typed:
            flow.link(phis, {name: flow.leaves_of(after[name], t) for name, t in typed.items()}, builder.block)
            builder.branch(top)
        return exits, settled


class _For(NamedTuple):
    items: Any
    target: Any  # code that assigns VALUE to the variable of the loop
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
        exits = []
        for item in items:
            self._assign(frame, item)
            frame.loops.append({"break": exits, "continue": []})
            goes_on = frame.run(self.turns.body)
            turns = frame.loops.pop()["continue"] + ([frame.edge()] if goes_on else [])
            if not frame.go_on(join(turns)):
                return frame.go_on(join(exits))
        return frame.go_on(join([*exits, frame.edge()]))

    def _assign(self, frame, item):
        frame.names[VALUE] = item
        exec(self.target, frame.names)


class Program:
    """A building block's source, ready to be run."""

    def __init__(self, function, lines):
        """`lines` of the function's file, as they were when it was imported."""
        code = function.__code__
        source = textwrap.dedent("".join(inspect.getblock(lines[code.co_firstlineno - 1 :])))
        definition = next(iter(ast.parse(source).body), None)
        if not isinstance(definition, ast.FunctionDef) or definition.name != code.co_name:
            raise TypeError(f"the source of {function.__qualname__} is not found in {code.co_filename}")
        ast.increment_lineno(definition, code.co_firstlineno - 1)
        self.signature, self.file = inspect.signature(function), code.co_filename
        self.locals = [*code.co_varnames, *code.co_cellvars]
        self.statements = self._statements(definition.body)
        free = dict(zip(code.co_freevars, (cell.cell_contents for cell in function.__closure__ or ()), strict=True))
        outside = function.__globals__ | free
        self.outside = {name: x for name, x in outside.items() if name not in self.locals} | HELPERS

    def run(self, args, kwargs):
        """What the function returns for these stand-ins."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        frame = Frame(self.locals, self.outside | bound.arguments)
        if frame.run(self.statements):
            frame.returns.append(Edge(tracer().builder.block, {VALUE: None}))
        result = join(frame.returns)[VALUE]
        if isinstance(result, Mixed):
            raise TypeError(result.why)
        return result

    def _statements(self, nodes):
        done, plain = [], []
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
                item = ast.copy_location(ast.Name(VALUE, ast.Load()), node)
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
    """One run of a building block: its variables among the names that it sees, and the edges that have left."""

    def __init__(self, local, names):
        self.locals, self.names = local, names
        self.returns, self.loops = [], []  # edges; of each loop that is being run: edges by kind of jump

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

    def pending(self):
        """The lists of edges that have not yet met."""
        return [self.returns, *(edges for loop in self.loops for edges in loop.values())]
