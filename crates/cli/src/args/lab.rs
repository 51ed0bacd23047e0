//! Flags of `throng lab`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use ::lab::target::{Service, Topology};

use super::values::DocumentFormat;

/// Arguments of `throng lab`.
#[derive(Debug, Args)]
pub(crate) struct LabArguments {
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

/// What can be done with servers.
#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Start a server on free ports of 127.0.0.1 or of a network of its own, and leave it running
    Up(Box<UpArguments>),
    /// List servers that run, and those that were left over
    List {
        /// Format of the list
        #[arg(long, value_enum, default_value = "text")]
        format: DocumentFormat,
    },
    /// Print what a server has logged
    Logs {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// End servers, and remove all that they had
    Down {
        /// Their names
        #[arg(value_name = "NAME", required_unless_present = "all")]
        names: Vec<String>,
        /// Every server that was left running, and whatever was left over
        #[arg(long, conflicts_with = "names")]
        all: bool,
    },
    /// List products that can be started, with their factors
    Products,
}

/// Flags of `throng lab up`.
#[derive(Debug, Args)]
pub(crate) struct UpArguments {
    /// Product to start, as `throng lab products` lists them
    #[arg(value_name = "PRODUCT")]
    pub(crate) product: String,
    /// Command to run beside the server, which ends with it. $THRONG_UDP, $THRONG_TCP, $THRONG_DOT
    /// and so on are the server's addresses, $THRONG_NAMES has its names, $THRONG_CA its CA
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,

    /// Set a factor; may be repeated
    #[arg(long, value_name = "FACTOR=VALUE")]
    pub(crate) set: Vec<String>,
    /// Data to serve: zone:NUMBER[,ttl=TIME][,delegations=NUMBER][,signed] generates that number of
    /// names, file:PATH,origin=ZONE is a zone file
    #[arg(long, value_name = "DATA", default_value = "zone:1000,ttl=1h")]
    pub(crate) data: String,
    /// Name by which it is listed and ended [default: that of the product]
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) name: Option<String>,
    /// Program to start instead of the one that is installed
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    /// User to run it as, by name or number; root to keep root [default: nobody if root calls,
    /// otherwise the caller]
    #[arg(long, value_name = "USER")]
    pub(crate) server_user: Option<String>,
    /// Image of its container, with the topology kubernetes
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Transports beside UDP and TCP: some of dot, doh2, h2c, doh3 and doq, or none [default: all
    /// that the product has]
    #[arg(long, value_name = "TRANSPORT[,...]", value_parser = services)]
    pub(crate) transports: Option<Services>,

    /// Network between server and clients: loopback; veth, a separate network; line:DELAY,LOSS such
    /// as line:10ms,0.1%, the same with a delay line; kubernetes, a pod behind a Service
    #[arg(long, value_name = "TOPOLOGY", default_value = "loopback", value_parser = topology)]
    pub(crate) topology: Topology,
    /// CPUs to run on, such as 0-1,3 [default: all]
    #[arg(long, value_name = "LIST", help_heading = "Resources")]
    pub(crate) cpus: Option<String>,
    /// CPUs' worth of time that it may use in every 100 ms (CFS quota), such as 0.5
    #[arg(long, value_name = "CPUS", help_heading = "Resources")]
    pub(crate) quota: Option<String>,
    /// Memory that it may use, such as 256M
    #[arg(long, value_name = "BYTES", help_heading = "Resources")]
    pub(crate) memory: Option<String>,
}

fn name(text: &str) -> Result<String, String> {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match !text.is_empty() && text.len() <= 64 && text.chars().all(is_fit) {
        true => Ok(text.to_owned()),
        false => Err("use up to 64 letters, digits, `-`, `_` and `.`".to_owned()),
    }
}

fn topology(text: &str) -> Result<Topology, String> {
    Topology::parse(text).map_err(|error| match error.hint {
        Some(hint) => format!("{}: {hint}", error.what),
        None => error.what,
    })
}

/// A list in one value.
#[derive(Clone, Debug)]
pub(crate) struct Services(pub(crate) Vec<Service>);

fn services(text: &str) -> Result<Services, String> {
    if text == "none" {
        return Ok(Services(Vec::new()));
    }
    let named = |word: &str| {
        let service = Service::ALL.into_iter().find(|it| it.word() == word);
        service.ok_or_else(|| format!("`{word}` is none of dot, doh2, h2c, doh3 and doq"))
    };
    text.split(',')
        .map(named)
        .collect::<Result<_, _>>()
        .map(Services)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_or_refused() {
        let some = services("dot,doq").unwrap().0;
        assert_eq!(some, [Service::Dot, Service::Doq]);
        assert!(services("none").unwrap().0.is_empty());
        assert!(services("dot,udp").is_err());
        for wrong in ["", "a/b", "a b"] {
            assert!(name(wrong).is_err(), "{wrong}");
        }
    }
}
