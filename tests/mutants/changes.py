"""The changes that are made to a source: mutmut's operators, at every place that decides something.

mutmut's own runner changes function bodies alone, while half of what the cores decide are numbers at the top of a
module. Words for people decide nothing: text with a blank in it, and what an exception says, stays as it is.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import libcst as cst
import libcst.matchers as m
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators, operator_number, operator_string

NUDGE = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One node in place of another, in line `line` of the source."""

    line: int
    old: cst.CSTNode
    new: cst.CSTNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    module: cst.Module
    changes: tuple[Change, ...]

    def mutant(self, change: Change) -> str:
        """The source with the one change."""
        changed: Any = self.module.deep_replace(change.old, change.new)
        return changed.code


def source(text: str, only: Collection[str] = ()) -> Source:
    """Every change of a source; `only`: of these functions and classes at its top."""
    wrapper = MetadataWrapper(cst.parse_module(text))
    visitor = _Visitor(wrapper.module, only)
    wrapper.visit(visitor)
    return Source(module=wrapper.module, changes=tuple(visitor.changes))


def number(node: cst.BaseNumber) -> Iterable[cst.BaseNumber]:
    """A float is moved by a twentieth, which a test with a wide bound does not notice; another number by 1."""
    if isinstance(node, cst.Float):
        yield node.with_changes(value=repr(float(f"{node.evaluated_value * NUDGE or NUDGE - 1:.6g}")))
    else:
        yield from operator_number(node)


def string(node: cst.BaseString) -> Iterable[cst.BaseString]:
    """A key, a name or a pattern; not a sentence."""
    if isinstance(node, cst.SimpleString) and ("r" in node.prefix or " " not in node.raw_value):
        yield from list(operator_string(node))[: 3 if "r" in node.prefix else 1]


def negated(node: cst.If | cst.CompIf) -> Iterable[cst.CSTNode]:
    test = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    yield node.with_changes(test=cst.UnaryOperation(operator=cst.Not(), expression=test))


def nothing_returned(node: cst.Return) -> Iterable[cst.Return]:
    if node.value is not None and not m.matches(node.value, m.Name("None")):
        yield node.with_changes(value=cst.Name("None"), whitespace_after_return=cst.SimpleWhitespace(" "))


OURS = {operator_number: number, operator_string: string}
OPERATORS = [
    *((kind, OURS.get(operator, operator)) for kind, operator in mutation_operators),
    (cst.If, negated),
    (cst.CompIf, negated),
    (cst.Return, nothing_returned),
]
# Types, what a class is made of, and words of an exception. `strict=` is a guard against a fault in the code itself.
UNTOUCHED = (
    m.Annotation()
    | m.Decorator()
    | m.Import()
    | m.ImportFrom()
    | m.Raise()
    | m.Arg(keyword=m.Name("strict"))
    | m.Assign(value=m.Call(func=m.Name("TypeVar")))
    | m.Assign(targets=[m.AssignTarget(target=m.Name("__all__"))])
)
# Of its pattern only the letters count, not their case.
IGNORES_CASE = m.Call(
    func=m.Attribute(value=m.Name("re")),
    args=[
        m.AtLeastN(n=1),
        m.Arg(m.MatchIfTrue(lambda value: m.findall(value, m.Attribute(attr=m.Name("IGNORECASE"))))),
    ],
)
TYPE_ALIAS = m.SimpleStatementLine(body=[m.Assign(value=m.Subscript() | m.BinaryOperation(operator=m.BitOr()))])


class _Visitor(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, module: cst.Module, only: Collection[str]) -> None:
        super().__init__()
        self.changes: list[Change] = []
        self.caseless: list[cst.CSTNode] = []
        self.untouched = [
            node for node in module.body if m.matches(node, TYPE_ALIAS) or (only and _name(node) not in only)
        ]

    def on_visit(self, node: cst.CSTNode) -> bool:
        if m.matches(node, UNTOUCHED) or any(node is each for each in self.untouched):
            return False
        if m.matches(node, IGNORES_CASE):
            self.caseless += m.findall(node, m.SimpleString())
        self.changes += self._changes(node)
        return True

    def _changes(self, node: cst.CSTNode) -> Iterator[Change]:
        line = self.get_metadata(PositionProvider, node).start.line if isinstance(node, _PLACED) else 0
        is_caseless = any(node is each for each in self.caseless)
        for kind, operator in OPERATORS:
            if isinstance(node, kind):
                for new in operator(node):
                    if is_caseless and new.value.lower() == node.value.lower():
                        continue
                    if not _drops_untouched(node, new):
                        yield Change(line=line, old=node, new=new)


def _name(node: cst.CSTNode) -> str:
    return node.name.value if isinstance(node, cst.FunctionDef | cst.ClassDef) else ""


_PLACED = cst.BaseExpression | cst.BaseSmallStatement | cst.BaseCompoundStatement | cst.CompIf | cst.ComparisonTarget


def _drops_untouched(old: cst.CSTNode, new: cst.CSTNode) -> bool:
    """Whether it takes a `strict=` away, or changes it."""
    if not isinstance(old, cst.Call) or not isinstance(new, cst.Call):
        return False
    return any(m.matches(arg, m.Arg(keyword=m.Name("strict"))) and arg not in new.args for arg in old.args)
