//! A lead, agents that dial it, and commands that ask it.

mod exact;
mod follow;
mod matrix;
mod pieces;
mod refusals;
mod thousand;
