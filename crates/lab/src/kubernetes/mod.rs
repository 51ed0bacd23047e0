//! A fleet in Kubernetes: [`Fleet`] makes it by the user's own `kubectl`, looks at it and removes
//! it; [`manifest`] has its objects for those who make them by other means.
//!
//! It takes rights in one namespace and none of the cluster ([`role`]): [`Fleet::check_rights`]
//! first, then [`Fleet::start`], [`Fleet::wait_for_lead`], and the lead is talked to by the command
//! of [`Fleet::relay`]. The fleet goes on without whoever has started it, and [`Fleet::attach`]
//! finds it again. [`Fleet::remove`] at the end; what nobody removes goes by itself after
//! [`Options::keep`]. Nothing is known here of what lead and agents say to each other.

mod fleet;
pub(crate) mod kubectl;
mod look;
pub mod manifest;
mod neighbours;
mod options;
mod rights;
mod state;
mod yaml;

pub use fleet::{Fleet, Listed, Relay};
pub use look::{Look, PATIENCE, Pod, PodName};
pub use options::{Options, Toleration, label};
pub use rights::role;
pub use state::State;
