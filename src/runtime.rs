//! The one doer: the loop, effects, the terminal, the life of agents.
