//! From the flags of a comparison to those of each of its runs.

use std::net::{IpAddr, SocketAddr};

use proto::Transport;

use crate::args::CompareTransportsArguments;
use crate::args::doh::Server;
use crate::args::endpoint::Endpoint;
use crate::args::flags::{self, Asker, Flag};
use crate::failure::Failure;
use crate::run::group::Group;
use crate::run::unused;

/// One run of each transport, in order.
///
/// Flags that only some transports have go to those that have them. A flag that none of them has is
/// refused by the first run, as anywhere else.
pub(super) fn of_each(arguments: &CompareTransportsArguments) -> Result<Vec<Group>, Failure> {
    let transports = &arguments.transports;
    for (index, transport) in transports.iter().enumerate() {
        if transports[..index].contains(transport) {
            return Err(Failure::usage(
                format!("--transports names {transport} twice"),
                "name each transport once; --repeat makes several runs of each",
            ));
        }
    }
    unused::refuse(
        &arguments.run,
        Asker::Transports,
        "in a comparison of transports",
    )?;
    if arguments.run.connections.asks_nothing() {
        return Err(Failure::usage(
            "--queries-per-connection 0: queries are compared, and this sends none",
            "leave it out, or give 1 for a connection each; `throng run` measures set-up alone",
        ));
    }
    let servers = Servers::read(arguments)?;
    let run = |transport: &Transport| of_one(arguments, *transport, servers.of(*transport)?);
    transports.iter().map(run).collect()
}

/// The run over one transport: without the flags that it does not have and another has.
fn of_one(
    arguments: &CompareTransportsArguments,
    transport: Transport,
    server: Option<String>,
) -> Result<Group, Failure> {
    let is_plain = server
        .as_deref()
        .is_some_and(|it| Server::parse(it).is_plain_http());
    let is_meant = |flag: &Flag| {
        let suits = flag.suits(transport) && !(is_plain && flag.is_of_tls());
        suits || !flag.suits_another(transport, &arguments.transports)
    };
    let is_own = |name: &str| ["server", "transport"].contains(&name);
    let mut flags = arguments.run.clone();
    let is_kept = |name: &str| !is_own(name) && flags::find(name).is_some_and(is_meant);
    flags.given.retain(|given| is_kept(&given.name));
    flags.transport = transport;
    flags.server = server.into_iter().collect();
    let runs = arguments.transports.len() as u64 * u64::from(arguments.repeat);
    let group = Group::plain(&flags).map_err(|failure| failure.of(&transport.to_string()))?;
    Ok(group.of_runs(runs))
}

/// The servers that `--server` names, and the ports that `--port` gives.
struct Servers {
    of_all: Option<String>,
    of_one: Vec<(Transport, String)>,
    ports: Vec<(Transport, u16)>,
}

impl Servers {
    fn read(arguments: &CompareTransportsArguments) -> Result<Self, Failure> {
        let mut servers = Servers {
            of_all: None,
            of_one: Vec::new(),
            ports: Vec::new(),
        };
        let given = arguments.run.server.join(",");
        for text in given.split(',').filter(|text| !text.is_empty()) {
            let of_one = text.split_once('=');
            // A URI may have a query component.
            match of_one.filter(|(name, _)| !name.contains("://")) {
                Some((name, server)) => {
                    let transport = named("--server", name, arguments)?;
                    let server = endpoint(server, Some(transport))?;
                    add("--server", &mut servers.of_one, transport, server)?;
                }
                None if servers.of_all.is_some() => {
                    return Err(Failure::usage(
                        format!("--server {given}: two servers for all transports"),
                        "give each its transport, as in udp=192.0.2.1,dot=192.0.2.2",
                    ));
                }
                None => servers.of_all = Some(endpoint(text, None)?),
            }
        }
        for text in &arguments.port {
            let port = text.split_once('=').and_then(|(name, port)| {
                let port = port.parse().ok().filter(|port| *port > 0);
                port.map(|port: u16| (name, port))
            });
            let Some((name, port)) = port else {
                return Err(Failure::usage(
                    format!("--port {text}: not a transport and its port"),
                    "give them as in --port udp=5300,dot=8853",
                ));
            };
            let transport = named("--port", name, arguments)?;
            add("--port", &mut servers.ports, transport, port)?;
        }
        servers.check(arguments)?;
        Ok(servers)
    }

    /// Ports need a server, and one port cannot be that of transports which differ in it.
    fn check(&self, arguments: &CompareTransportsArguments) -> Result<(), Failure> {
        let any = self.of_all.is_some() || !self.of_one.is_empty();
        let transports = &arguments.transports;
        if !any {
            return match self.ports.is_empty() {
                true => Ok(()),
                false => Err(Failure::usage(
                    "--port has no effect on the built-in responder",
                    "give a server with --server, or leave out --port",
                )),
            };
        }
        let is_own = |transport: &&Transport| self.of_one.iter().any(|(of, _)| of == *transport);
        let (_, of_all): (Vec<&Transport>, Vec<&Transport>) = transports.iter().partition(is_own);
        let Some(server) = &self.of_all else {
            return match of_all.first() {
                None => Ok(()),
                Some(transport) => Err(Failure::usage(
                    format!("--server names none for {transport}"),
                    format!("add {transport}=HOST, or leave it out of --transports"),
                )),
            };
        };
        let mut standard: Vec<u16> = of_all.iter().map(|it| it.default_port()).collect();
        standard.sort_unstable();
        standard.dedup();
        match has_port(server) && standard.len() > 1 {
            true => Err(Failure::usage(
                format!("--server {server}: one port for transports that have different ones"),
                "give the server without it, and --port udp=5300,dot=8853",
            )),
            false => Ok(()),
        }
    }

    /// The server of one transport with its port; none for the built-in responder.
    fn of(&self, transport: Transport) -> Result<Option<String>, Failure> {
        let own = self.of_one.iter().find(|(of, _)| *of == transport);
        let Some(server) = own.map(|(_, server)| server).or(self.of_all.as_ref()) else {
            return Ok(None);
        };
        let Some((_, port)) = self.ports.iter().find(|(of, _)| *of == transport) else {
            return Ok(Some(server.clone()));
        };
        if server.contains("://") {
            return Err(Failure::usage(
                format!("--port {transport}={port}: {server} is a URI"),
                "give the port within the URI",
            ));
        }
        if has_port(server) {
            return Err(Failure::usage(
                format!("{transport} has two ports: that of {server}, and --port {port}"),
                "leave out one of them",
            ));
        }
        let bare = server.trim_start_matches('[').trim_end_matches(']');
        Ok(Some(match bare.parse::<IpAddr>() {
            Ok(address) => SocketAddr::new(address, *port).to_string(),
            Err(_) => format!("{server}:{port}"),
        }))
    }
}

/// A server as it is typed, for one transport or for all.
fn endpoint(text: &str, transport: Option<Transport>) -> Result<String, Failure> {
    let endpoint =
        Endpoint::read(text).map_err(|reason| Failure::of_value(&reason).of("--server"))?;
    match (transport, endpoint.only_transport()) {
        (Some(transport), _) => {
            let checked = endpoint.check(transport);
            checked.map_err(|reason| Failure::of_value(&reason))?;
        }
        (None, Some(only)) => {
            return Err(Failure::usage(
                format!("--server {text} names one transport, and several are compared"),
                format!(
                    "write --server {only}={}, or leave out the scheme",
                    endpoint.server
                ),
            ));
        }
        (None, None) => {}
    }
    Ok(endpoint.server)
}

/// A transport by its name, which has to be one of those compared.
fn named(
    flag: &str,
    name: &str,
    arguments: &CompareTransportsArguments,
) -> Result<Transport, Failure> {
    let transport: Transport = name
        .parse()
        .map_err(|reason: String| Failure::plain(format!("{flag}: {reason}")))?;
    match arguments.transports.contains(&transport) {
        true => Ok(transport),
        false => Err(Failure::usage(
            format!("{flag} is for {transport}, which is not compared"),
            format!("add {transport} to --transports, or leave it out of {flag}"),
        )),
    }
}

/// Adds what a transport may have once.
fn add<T>(
    flag: &str,
    list: &mut Vec<(Transport, T)>,
    transport: Transport,
    item: T,
) -> Result<(), Failure> {
    if list.iter().any(|(of, _)| *of == transport) {
        return Err(Failure::usage(
            format!("{flag} names {transport} twice"),
            "leave out one of them",
        ));
    }
    list.push((transport, item));
    Ok(())
}

/// True if a server is given with its port.
fn has_port(server: &str) -> bool {
    let authority = Server::parse(server).authority;
    let is_address = authority.parse::<IpAddr>().is_ok() || authority.ends_with(']');
    !is_address && authority.contains(':')
}

#[cfg(test)]
mod tests {
    use settings::{HttpMethod, Run};

    use super::*;
    use crate::args::Command;

    fn parse(flags: &str) -> CompareTransportsArguments {
        let words = ["throng", "compare-transports"].into_iter();
        let line = words.chain(flags.split_whitespace()).map(Into::into);
        match crate::command_line::parse(line.collect()).unwrap().command {
            Command::CompareTransports(arguments) => *arguments,
            other => panic!("{other:?}"),
        }
    }

    /// The server of each run.
    fn servers(flags: &str) -> Vec<Option<String>> {
        let runs = of_each(&parse(flags)).unwrap();
        runs.into_iter()
            .map(|group| group.run.servers.first().cloned())
            .collect()
    }

    #[test]
    fn servers_and_ports_go_to_their_transports() {
        let cases = [
            ("", [None, None, None]),
            ("--server ns1.example", [Some("ns1.example"); 3]),
            (
                "--server 2001:db8::1 --port dot=8853",
                [
                    Some("2001:db8::1"),
                    Some("2001:db8::1"),
                    Some("[2001:db8::1]:8853"),
                ],
            ),
            (
                "--server udp=192.0.2.1:5300,192.0.2.2 --port tcp=54",
                [
                    Some("192.0.2.1:5300"),
                    Some("192.0.2.2:54"),
                    Some("192.0.2.2"),
                ],
            ),
            (
                "--server udp=a:1,tcp=b:2,dot=[2001:db8::1]",
                [Some("a:1"), Some("b:2"), Some("[2001:db8::1]")],
            ),
        ];
        for (flags, expected) in cases {
            let expected = expected.map(|server: Option<&str>| server.map(str::to_owned));
            assert_eq!(servers(flags), expected, "{flags}");
        }
        let uri = "https://dns.example:8443/q{?dns}";
        let flags = format!("--server 192.0.2.1,doh2={uri} --transports udp,doh2");
        let expected = ["192.0.2.1", uri].map(|server| Some(server.to_owned()));
        assert_eq!(servers(&flags), expected);
        let one_port = servers("--server 192.0.2.1:5300 --transports udp,tcp");
        assert_eq!(one_port.len(), 2);
    }

    #[test]
    fn flags_go_to_the_transports_that_have_them() {
        let flags = "--transports udp,tcp,dot,doh2,doq --tls-insecure --tcp-fallback \
                     --queries-per-connection 5 --tcp-fast-open --doh-method get";
        let runs = of_each(&parse(flags)).unwrap();
        let runs: Vec<Run> = runs.into_iter().map(|group| group.run).collect();
        let insecure = runs
            .iter()
            .map(|run| run.tls.as_ref().map(|tls| tls.accepts_any));
        let insecure: Vec<Option<bool>> = insecure.collect();
        assert_eq!(insecure, [None, None, Some(true), Some(true), Some(true)]);
        let queries: Vec<_> = runs.iter().map(|run| run.connections.queries_max).collect();
        assert_eq!(queries, [None, Some(5), Some(5), Some(5), Some(5)]);
        let fast: Vec<bool> = runs
            .iter()
            .map(|run| run.connections.tcp_fast_open)
            .collect();
        assert_eq!(fast, [false, true, true, true, false]);
        let methods = runs
            .iter()
            .map(|run| run.http.as_ref().map(|http| http.method));
        let methods: Vec<Option<HttpMethod>> = methods.collect();
        assert_eq!(methods, [None, None, None, Some(HttpMethod::Get), None]);
        let fallback: Vec<bool> = runs.iter().map(|run| run.tcp_fallback).collect();
        assert_eq!(fallback, [true, false, false, false, false]);
        // None of them has TLS: the flag stays, and is refused.
        let refused = of_each(&parse("--transports udp,tcp --tls-insecure")).unwrap_err();
        assert!(
            refused.what().contains("--tls-insecure"),
            "{}",
            refused.what()
        );
    }
}
