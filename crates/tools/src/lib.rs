//! The Tool trait and registry, one file per tool, processes and sandbox
