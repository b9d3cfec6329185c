"""The product's parser and the API server refuse and accept the same objects: one contract, implemented twice."""

from __future__ import annotations

import pytest
from tests.crds.corpus import Case, cases, documents
from tests.crds.server import Server
from tests.crds.structural import defaulted, faults, schema_of

from plimsoll.core.spec import InvalidResourcesError, SourceDocument, parse

pytestmark = pytest.mark.timeout(1200)


def problems(case: Case) -> list[str]:
    """The parser's findings on the object itself; an API server cannot know those on other objects."""
    try:
        parse([SourceDocument(content) for content in documents(case.content)])
    except InvalidResourcesError as error:
        subject = f"{case.kind}/{case.content['metadata']['name']}"
        return [str(problem) for problem in error.problems if problem.subject == subject]
    return []


ONLY_HERE = {
    "there is no HardwareProfile": "other objects may come later",
    "there is no BrokerCluster": "other objects may come later",
    "there is no EdgeBroker": "other objects may come later",
    "there is no Feed": "other objects may come later",
    "has no broker": "edges of a cluster are EdgeBrokers, too, and may come later",
    "source and target are in different clusters": "edges are objects of their own",
    "leaves too little": "the memory is in the profile, another object",
    "the head needs a log": "memory and bandwidth are in the profile, another object",
    "is used 2 times in this fleet": "names of brokers are known of all clusters together only",
    "goes from": "two numbers inside a text",
    "never comes": "numbers inside a text",
}
"""What the parser refuses and an API server accepts, and why it cannot know."""


def only_here(found: list[str]) -> bool:
    """Whether an API server can know none of the parser's findings."""
    return bool(found) and all(any(words in text for words in ONLY_HERE) for text in found)


ALL = list(cases())


def test_there_are_many_and_of_both_sorts():
    bad = sum(bool(problems(case)) for case in ALL)
    assert len(ALL) > 1000
    assert bad > 400
    assert len(ALL) - bad > 400


def test_the_schemas_types_and_bounds_agree_with_the_parser():
    """Without an API server, as far as schemas go: the parser refuses all that they refuse."""
    for case in ALL:
        schema = schema_of(case.kind)
        if list(faults(schema, defaulted(schema, case.content))):
            assert problems(case), str(case)


@pytest.mark.cluster
@pytest.mark.slow
def test_the_api_server_agrees_with_the_parser(server: Server):
    wrong = []
    for case in ALL:
        ours, reply = problems(case), server.create(case.content, dry=True)
        if bool(ours) == reply.accepted and not only_here(ours):
            wrong.append(f"{case}\n  we: {ours[:1]}\n  it: {reply.code} {reply.message[:300]}")
    assert not wrong, f"{len(wrong)} of {len(ALL)}\n" + "\n".join(wrong[:40])
