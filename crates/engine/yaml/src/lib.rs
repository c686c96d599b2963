//! YAML as Go reads and writes it: parser, resolver, tree with positions, emitters.
