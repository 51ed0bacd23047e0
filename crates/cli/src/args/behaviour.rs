//! Flags that say how the built-in responder behaves, and the simulated network before it.

use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

use settings::Simulation;

use super::server_model::ServerModelArguments;
use super::values::{count, delay, duration, stall};
use crate::failure::Failure;

/// The simulated network of `--driver sim`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Simulation (--driver sim)")]
pub(crate) struct SimulationArguments {
    /// One-way delay
    #[arg(long, default_value = "1ms", value_name = "TIME", value_parser = duration)]
    pub(crate) sim_delay: Duration,
    /// Maximum of a uniform jitter that is added to the delay
    #[arg(long, default_value = "0ms", value_name = "TIME", value_parser = duration)]
    pub(crate) sim_jitter: Duration,
    /// Share of datagrams and segments lost, each way
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) sim_loss: f64,
    /// Share of datagrams that arrive twice
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) sim_duplicate: f64,
    /// Share of datagrams overtaken by later ones
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) sim_reorder: f64,
    #[command(flatten)]
    pub(crate) server: ServerModelArguments,
}

impl SimulationArguments {
    /// What these flags ask for.
    ///
    /// # Errors
    /// What is to be a share and is none.
    pub(crate) fn asked(&self) -> Result<Simulation, Failure> {
        let shares = [
            ("--sim-loss", self.sim_loss),
            ("--sim-duplicate", self.sim_duplicate),
            ("--sim-reorder", self.sim_reorder),
        ];
        let is_wrong = |(_, share): &&(&str, f64)| !(0.0..=1.0).contains(share);
        if let Some((flag, share)) = shares.iter().find(is_wrong) {
            return Err(Failure::usage(
                format!("{flag} {share}: not a share"),
                "give a number from 0 to 1, such as 0.01",
            ));
        }
        Ok(Simulation {
            delay: self.sim_delay,
            jitter: self.sim_jitter,
            loss_share: self.sim_loss,
            duplicate_share: self.sim_duplicate,
            reorder_share: self.sim_reorder,
            server: self.server.model(),
        })
    }
}

/// Behaviour of the built-in responder in self-tests and simulations.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Built-in responder (self-test and simulation)")]
pub(crate) struct SelfTestBehaviour {
    #[command(flatten)]
    pub(crate) behaviour: BehaviourArguments,
}

/// What a responder does beside answering.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
pub(crate) struct BehaviourArguments {
    /// Time from query to response: 5ms, uniform:1ms..10ms, exponential:5ms
    #[arg(long, value_name = "DELAY", value_parser = delay)]
    pub(crate) delay: Option<::responder::Delay>,
    /// Share of responses that are not sent
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) loss: f64,
    /// Shares of responses with an RCODE, such as SERVFAIL=0.01,REFUSED=0.1
    #[arg(long, value_name = "RCODE=SHARE[,...]")]
    pub(crate) rcodes: Option<String>,
    /// Share of responses that are truncated (TC=1)
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) truncate: f64,
    /// Share of responses that are sent twice
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) duplicate: f64,
    /// Share of responses with a wrong ID
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) wrong_id: f64,
    /// Share of responses with another question
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) wrong_question: f64,
    /// Share of responses with QR=0, as queries have
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) wrong_qr: f64,
    /// Share of HTTP responses with the media type application/dns, not application/dns-message
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) wrong_media_type: f64,
    /// Share of responses that consist of random bytes
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) garbage: f64,
    /// Share of responses that are as long as can be: 64 KB, over UDP what the query's EDNS allows
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) oversize: f64,
    /// Share of queries over HTTP or QUIC whose stream is reset instead of answered
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) reset_streams: f64,
    /// Shares of HTTP requests answered with a status alone, such as 429=0.1,503=0.01
    #[arg(long, value_name = "STATUS=SHARE[,...]")]
    pub(crate) http_statuses: Option<String>,
    /// Share of QUIC connections that are asked to prove their address (Retry)
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) quic_retry: f64,
    /// Share of QUIC connections that are offered no version they support (Version Negotiation)
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) quic_version_negotiation: f64,
    /// Share of QUIC connections that are refused
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) quic_refuse: f64,
    /// Share of QUIC connections whose first datagrams are not answered
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) quic_ignore: f64,
    /// Period in which nothing is answered, such as at=3s,for=1s,every=10s; may be repeated
    #[arg(long, value_name = "STALL", value_parser = stall)]
    pub(crate) stall: Vec<::responder::Stall>,
    /// Answer at most this many queries a second: 37000; further ones queue (then=delay, the
    /// default, with queue=10000 before it drops), or are dropped (then=drop, with burst=5ms)
    #[arg(long, value_name = "QPS[,then=delay|drop][,...]")]
    pub(crate) ceiling: Option<String>,
    /// Accept at most this many TCP, DoT and DoH/2 connections at a time
    #[arg(long, value_name = "N", value_parser = count::<u32>)]
    pub(crate) tcp_clients: Option<u32>,
    /// Close a connection that has been idle this long
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) idle_timeout: Option<Duration>,
    /// End each connection after this many queries, as in 100:close (close, reset, half-close,
    /// stop-reading, tls-alert, goaway, error=CODE; over QUIC, reset is a stateless reset)
    #[arg(long, value_name = "N:HOW")]
    pub(crate) end_after: Option<String>,
}
