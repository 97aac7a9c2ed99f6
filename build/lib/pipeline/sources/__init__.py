"""Where logits come from: one module per source, named by `source._target_` in conf/benchmark/."""
