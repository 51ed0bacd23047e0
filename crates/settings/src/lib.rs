//! What a run is asked for, in types that have one definition for all crates: flags are read into
//! them, plans and drivers work by them, and records keep them.
//!
//! Data without behaviour on the network: names, defaults, and what follows from a value alone,
//! such as the port of a transport. What contradicts what is looked at where it is known, by the
//! plan (crate load) and the flags (crate cli). The JSON form is that of run records: times are
//! whole nanoseconds in fields whose names end in `_ns`.
//!
//! | module | contents |
//! |---|---|
//! | [`run`] | everything that a run is asked for |
//! | [`transport`] | how messages travel |
//! | [`questions`] | what is asked, and what each query carries |
//! | [`http`] | the requests of DoH |
//! | [`tls`] | how TLS is asked for |
//! | [`sockets`] | how the kernel's sockets are opened |
//! | [`agents`] | what is done when a part of a run is lost |
//! | [`driver`] | what sends and receives the data, and what timestamps datagrams |
//! | [`arrival`] | when queries are due |
//! | [`connections`] | how long connections live, and how they are opened |
//! | [`presence`] | when clients are there |
//! | [`behaviour`] | what the built-in responder does to queries |
//! | [`simulation`] | the network and the server where nothing is real |
//! | [`number`] | numbers as they are typed |
//! | [`stub`] | which of its servers a client asks, and how often |

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")
)]

pub mod agents;
pub mod arrival;
pub mod behaviour;
pub mod connections;
pub mod driver;
pub mod file;
pub mod http;
mod nanos;
pub mod number;
pub mod presence;
pub mod questions;
pub mod run;
pub mod simulation;
pub mod sockets;
pub mod stub;
pub mod tls;
pub mod transport;

pub use agents::OnAgentLoss;
pub use arrival::{Arrival, ClientArrival, Process, ReplaySource, Think};
pub use behaviour::{Behaviour, ConnectionEnd, Delay, FaultShares, QuicShares, Stall};
pub use connections::ConnectionPolicy;
pub use driver::{DriverChoice, DriverKind, InterfaceName, StampSource};
pub use file::FileName;
pub use http::{Http, HttpMethod, HttpScheme};
pub use presence::{Presence, Reset};
pub use questions::{Edns, Labels, Message, Names, QuestionOrder, Questions, Repeats, Tsig};
pub use run::{Generator, Limits, Run};
pub use simulation::{CacheModel, ServiceModel, Simulation};
pub use sockets::SocketOptions;
pub use stub::{ResolvConf, Retry, ServerOrder, Stub, StubPolicy};
pub use tls::Tls;
pub use transport::Transport;

/// A setting with a few values, each of which has a name and can be told in a few words.
pub trait Named: Copy + PartialEq + Sized + 'static {
    /// What it is called, such as `transport`.
    const WHAT: &'static str;
    /// All values, in the order in which lists have them.
    const ALL: &'static [Self];

    /// As it is written in flags, files and records.
    fn name(self) -> &'static str;

    /// What it means, for lists of the values.
    fn meaning(self) -> &'static str;

    /// The value of that name.
    ///
    /// # Errors
    /// There is none; the message lists them.
    fn named(text: &str) -> Result<Self, String> {
        let mut all = Self::ALL.iter().copied();
        all.find(|value| value.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|value| value.name()).collect();
            let (last, others) = names.split_last().expect("a setting has values");
            format!(
                "unknown {} `{text}`: expected {} or {last}",
                Self::WHAT,
                others.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Named + std::fmt::Debug + serde::Serialize>() {
        for value in T::ALL {
            assert_eq!(T::named(value.name()), Ok(*value));
            let json = serde_json::to_value(value).unwrap();
            assert!(json.as_str().unwrap().eq_ignore_ascii_case(value.name()));
            assert!(!value.meaning().is_empty() && !value.meaning().ends_with('.'));
        }
        let unknown = T::named("nothing of the kind").unwrap_err();
        let names = |name: &&T| unknown.contains(name.name());
        assert!(T::ALL.iter().all(|name| names(&name)), "{unknown}");
    }

    #[test]
    fn each_value_is_read_by_the_name_that_records_have() {
        check::<Transport>();
        check::<HttpMethod>();
        check::<DriverKind>();
        check::<StampSource>();
        check::<Process>();
        check::<ServerOrder>();
        check::<OnAgentLoss>();
    }
}
