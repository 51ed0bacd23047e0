//! Two network namespaces that are joined by a pair of virtual network cards (veth): a network
//! without any delay of its own.

use std::net::IpAddr;

use super::check_ends;
use super::end::{End, Origin, addresses_of};
use crate::run::RunError;

/// The card at each end.
const CARD: &str = "throng0";

/// The two ends; what was made goes with them.
#[derive(Debug)]
pub struct Pair([End; 2]);

impl Pair {
    /// Makes them.
    ///
    /// # Errors
    /// They cannot be made here, or names are taken; nothing is left then.
    pub fn lay(between: &[String; 2], addresses: &[Vec<IpAddr>; 2]) -> Result<Pair, RunError> {
        check_ends(between, addresses)?;
        let lines_of = |end: usize| {
            let mut lines = addresses_of(CARD, &addresses[end]);
            lines.push(format!("link set {CARD} up"));
            lines
        };
        let (near, ()) = End::open(&between[0], Origin::Made, || Ok((Vec::new(), ())))?;
        let peer = format!("peer name {CARD} netns {}", between[0]);
        let make = format!("link add {CARD} type veth {peer}");
        let of_far = [make].into_iter().chain(lines_of(1)).collect();
        let (far, ()) = End::open(&between[1], Origin::Made, || Ok((of_far, ())))?;
        near.ip(&lines_of(0))?;
        Ok(Pair([near, far]))
    }

    /// Leaves them there when this process has ended.
    ///
    /// # Errors
    /// They cannot be marked so.
    pub fn keep(&mut self) -> Result<(), RunError> {
        self.0.iter_mut().try_for_each(End::keep)
    }
}
