"""How a checkpoint wants to be pooled: read from its files, overridden by the configuration."""

from __future__ import annotations

from dataclasses import dataclass

from engine.config import EngineConfig
from engine.jsonfile import read_json_object
from engine.models.base import Model
from engine.models.config import ModelConfig
from engine.models.headed import head_of
from engine.pooling.dispatcher import BuiltPart, Pooler
from engine.pooling.method import MethodSpec
from engine.pooling.pooler_file import read_pooler_file
from engine.pooling.recipes import Source, routes_of
from engine.pooling.routes import Routes
from engine.pooling.st_modules import SentenceModules, read_modules, read_pooling_module
from engine.pooling.tasks import TaskRules
from engine.pooling.weights import HeadWeights


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolingOptions:
    """What the pooler is built from. `skips_prompt`: see `TaskRules`."""

    routes: Routes
    skips_prompt: bool = False

    @property
    def rules(self) -> TaskRules:
        """The checkpoint declares what its files give a head for."""
        return TaskRules(
            model_tasks=frozenset(self.routes), routes=self.routes, skips_prompt=self.skips_prompt
        )


def read_pooling_options(config: EngineConfig, model: ModelConfig) -> PoolingOptions:
    """Configuration over the checkpoint's files over the family's habit.

    Decoders: LAST, normalised. Encoders: CLS, not normalised. Raises CheckpointError for a
    pooling file that asks for what the engine does not have.
    """
    folder, is_decoder = config.model, model.family == "decoder"
    modules = read_modules(folder)
    normalize = is_decoder if modules is None else modules.normalize
    pooling_file = folder / "1_Pooling" / "config.json"
    if modules is None and pooling_file.exists():
        methods, include_prompt = read_pooling_module(pooling_file)
        modules = SentenceModules(methods=methods, include_prompt=include_prompt)
    modules = modules or SentenceModules()
    names = (config.pooling,) if config.pooling else modules.methods
    architecture = (read_json_object(folder / "config.json").get("architectures") or [""])[0]
    source = Source(
        folder=folder,
        hidden=model.hidden_size,
        ending=head_of(str(architecture)),
        modules=modules,
        pooler=read_pooler_file(folder),
        method=MethodSpec(names=names or (("LAST",) if is_decoder else ("CLS",))),
        normalize=normalize,
    )
    return PoolingOptions(routes=routes_of(source), skips_prompt=not modules.include_prompt)


def build_pooler(config: EngineConfig, model: Model) -> Pooler:
    """The pooler of the last stage, with the weights of its heads."""
    options = read_pooling_options(config, model.config)
    weights = HeadWeights(config.model, model)
    built = {
        task: tuple(BuiltPart(method=part.method, head=part.head.build(weights)) for part in parts)
        for task, parts in options.routes.items()
    }
    return Pooler(built, overlaps_steps=config.overlaps_steps)
