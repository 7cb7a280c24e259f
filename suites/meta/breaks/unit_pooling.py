"""Breaks of `suites/unit/pooling`."""

from __future__ import annotations

from typing import Any, Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break


def _borrowed(pooling: Any, rows: Any, **_: Any) -> Any:
    """`AllPooling.own`, which copies nothing."""
    return rows


BREAKS: Final = (
    Break(
        name="rows-are-never-copied",
        suite="suites/unit/pooling/test_ownership.py",
        red="test_ownership_table",
        at="engine.pooling.all:AllPooling.own",
        instead=instead.value(_borrowed),
    ),
    Break(
        name="borrowed-rows-leave-a-mixed-step",
        suite="suites/unit/pooling/test_mixed_tasks.py",
        red="test_every_request_gets_its_own_rows",
        at="engine.pooling.all:AllPooling.own",
        instead=instead.value(_borrowed),
    ),
    Break(
        name="chunks-come-out-again",
        suite="suites/unit/pooling/test_retention.py",
        red="test_chunks_come_out_once_oldest_first",
        at="engine.pooling.retention:ChunkStore.take",
        instead=instead.value(lambda store, request_id: list(store._rows.get(request_id, ()))),
    ),
    Break(
        name="a-mean-over-the-last-chunk",
        suite="suites/unit/pooling/test_methods.py",
        red="test_chunks_change_no_bit",
        at="engine.pooling.mean:MeanPooling.divisor",
        instead=instead.value(lambda method, entry: float(entry.count)),
    ),
    Break(
        name="heads-give-logits-whatever-is-asked",
        suite="suites/unit/pooling/test_heads.py",
        red="test_classifier_is_a_product_and_an_activation",
        at="engine.pooling.heads.classifier:ClassifierHead._chosen",
        instead=instead.returns("identity"),
    ),
    Break(
        name="every-classifier-has-a-sigmoid",
        suite="suites/unit/pooling/test_hf_heads.py",
        red="test_classifiers_are_hugging_faces",
        at="engine.pooling.heads.classifier:ClassifierHead._chosen",
        instead=lambda right: (
            lambda head, asked: "sigmoid" if right(head, asked) == "softmax" else right(head, asked)
        ),
    ),
    Break(
        name="answers-come-out-backwards",
        suite="suites/unit/pooling/test_dispatcher.py",
        red="test_outputs_are_in_batch_order_and_of_finished_requests_only",
        at="engine.pooling.dispatcher:Pooler.pool",
        instead=instead.result(lambda pooled: pooled[::-1]),
    ),
    Break(
        name="dense-modules-without-activation",
        suite="suites/unit/pooling/test_sentence_modules.py",
        red="test_pooling_modes_dense_and_normalise",
        at="engine.pooling.heads.layers:Dense.__init__",
        instead=lambda right: (
            lambda dense, weight, bias, *, activation: right(
                dense, weight, bias, activation="identity"
            )
        ),
    ),
    Break(
        name="maxsim-takes-the-mean",
        suite="suites/unit/pooling/test_special_heads.py",
        red="test_maxsim_is_its_definition",
        at="engine.pooling.late_interaction:maxsim",
        instead=instead.value(
            lambda query, document: (query.float() @ document.float().T).mean(1).sum()
        ),
    ),
)
