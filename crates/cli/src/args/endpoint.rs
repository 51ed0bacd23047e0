//! Servers as they are typed: a URI names the transport too, and dig's `@HOST` and `HOST#PORT` are
//! understood.

use std::net::{IpAddr, Ipv6Addr};

use proto::Transport;

use super::run::RunArguments;
use super::values::refusal;

/// A server, and what its scheme says of the transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// `HOST`, `HOST:PORT`, an address, or a URI of DNS over HTTPS.
    pub(crate) server: String,
    scheme: Option<Scheme>,
}

/// What the scheme of a URI says of the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    /// It is this one.
    Is(Transport),
    /// It is one of DNS over HTTPS; HTTP/2 unless told.
    Http,
}

impl Endpoint {
    /// Takes `text` apart.
    ///
    /// # Errors
    /// It is not one server: what it is, and the form to use.
    pub(crate) fn read(text: &str) -> Result<Endpoint, String> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(Endpoint {
                server: host(text)?,
                scheme: None,
            });
        };
        let of_transport = |transport| {
            let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
            match path {
                "" => Ok(Endpoint {
                    server: host(server)?,
                    scheme: Some(Scheme::Is(transport)),
                }),
                _ => Err(refusal(
                    format_args!("`{text}` has a path, and transport {transport} has none"),
                    format_args!("write {scheme}://{server}, or https://{rest}"),
                )),
            }
        };
        let https = |scheme| {
            Ok(Endpoint {
                server: format!("https://{rest}"),
                scheme: Some(scheme),
            })
        };
        match scheme.to_ascii_lowercase().as_str() {
            "udp" | "dns" => of_transport(Transport::Udp),
            "tcp" => of_transport(Transport::Tcp),
            "tls" | "dot" => of_transport(Transport::Dot),
            "quic" | "doq" => of_transport(Transport::Doq),
            "https" | "doh" => https(Scheme::Http),
            "h2" | "doh2" => https(Scheme::Is(Transport::Doh2)),
            "h3" | "doh3" => https(Scheme::Is(Transport::Doh3)),
            "http" => Ok(Endpoint {
                server: format!("http://{rest}"),
                scheme: Some(Scheme::Http),
            }),
            "sdns" => Err(refusal(
                "DNS stamps (sdns://) cannot be read",
                "write the server and its transport, such as tls://192.0.2.1 or \
                 https://dns.example/dns-query",
            )),
            other => Err(refusal(
                format_args!("`{other}` is not a scheme of a DNS server"),
                "use udp, tcp, tls, quic, https or h3, such as tls://192.0.2.1",
            )),
        }
    }

    /// The transport that its scheme names, where `given` is that of the command.
    fn transport(&self, given: Option<Transport>) -> Option<Transport> {
        match (self.scheme?, given) {
            (Scheme::Is(transport), _) => Some(transport),
            (Scheme::Http, None) => Some(Transport::Doh2),
            // Whether it has URIs is checked with the path.
            (Scheme::Http, Some(given)) => Some(given),
        }
    }

    /// The transport that its scheme allows alone.
    pub(crate) fn only_transport(&self) -> Option<Transport> {
        match self.scheme? {
            Scheme::Is(transport) => Some(transport),
            Scheme::Http => None,
        }
    }

    /// Refuses a transport that contradicts the scheme.
    pub(crate) fn check(&self, given: Transport) -> Result<(), String> {
        match self.transport(Some(given)) {
            Some(named) if named != given => Err(refusal(
                format_args!(
                    "the URI of {} says {named}, and --transport {given}",
                    self.server
                ),
                "leave out one of them",
            )),
            _ => Ok(()),
        }
    }
}

/// `HOST`, `HOST:PORT`, an address or `[IPV6]:PORT`, as dig and Unbound write them too.
fn host(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('@').unwrap_or(text);
    if let Some((first, others)) = text.split_once(',') {
        let others = others.replace(',', " --server ");
        return Err(refusal(
            format_args!("`{text}` is more than one server"),
            format_args!("repeat the flag: --server {first} --server {others}"),
        ));
    }
    if let Some((server, port)) = text.split_once('#') {
        return match port.parse::<u16>() {
            Ok(port) => Ok(with_port(server, port)),
            Err(_) => Err(refusal(
                format_args!("`{port}` in `{text}` is not a port"),
                format_args!("write {server}:PORT; the name in the certificate is --tls-name"),
            )),
        };
    }
    // Unbound's `192.0.2.1@853`: of a name, it would be a user.
    if let Some((server, port)) = text.split_once('@')
        && server.parse::<IpAddr>().is_ok()
        && let Ok(port) = port.parse::<u16>()
    {
        return Ok(with_port(server, port));
    }
    Ok(text.to_owned())
}

fn with_port(server: &str, port: u16) -> String {
    match server.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]:{port}"),
        Err(_) => format!("{server}:{port}"),
    }
}

/// The transport that the URI of a server names.
pub(crate) fn transport_of(server: &str) -> Option<Transport> {
    Endpoint::read(server).ok()?.transport(None)
}

/// Lets the servers of a run say the transport: a URI is taken apart, in the flags as they were
/// given too.
///
/// # Errors
/// A server that cannot be read, or URIs and `--transport` that contradict each other.
pub(crate) fn apply(run: &mut RunArguments) -> Result<(), String> {
    let is_given = run.given.iter().any(|given| given.name == "transport");
    let mut transport = is_given.then_some(run.transport);
    let mut servers = Vec::new();
    for text in &run.server {
        let endpoint = Endpoint::read(text).map_err(|reason| format!("--server: {reason}"))?;
        match transport {
            Some(transport) if is_given => endpoint.check(transport)?,
            Some(transport) => endpoint.check(transport).map_err(|_| {
                refusal(
                    "the servers of a run are reached over one transport, and their URIs name \
                     several",
                    "give them one scheme, or compare with `throng compare-transports`",
                )
            })?,
            None => {}
        }
        transport = transport.or_else(|| endpoint.transport(None));
        servers.push(endpoint.server);
    }
    let given = run.given.iter_mut().find(|given| given.name == "server");
    if let Some(given) = given {
        given.values.clone_from(&servers);
    }
    run.server = servers;
    if let Some(transport) = transport.filter(|_| !is_given) {
        run.transport = transport;
        run.given.push(super::Given {
            name: "transport".to_owned(),
            values: vec![transport.to_string()],
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_read_as_uris_and_as_dig_has_them() {
        let is = |transport| Some(Scheme::Is(transport));
        for (text, server, scheme) in [
            ("192.0.2.1", "192.0.2.1", None),
            ("ns1.example:5300", "ns1.example:5300", None),
            ("2001:db8::1", "2001:db8::1", None),
            ("[2001:db8::1]:53", "[2001:db8::1]:53", None),
            ("@192.0.2.1", "192.0.2.1", None),
            ("@ns1.example", "ns1.example", None),
            ("192.0.2.1#5300", "192.0.2.1:5300", None),
            ("2001:db8::1#5300", "[2001:db8::1]:5300", None),
            ("192.0.2.1@853", "192.0.2.1:853", None),
            ("fe80::1%eth0", "fe80::1%eth0", None),
            ("udp://192.0.2.1", "192.0.2.1", is(Transport::Udp)),
            ("UDP://192.0.2.1/", "192.0.2.1", is(Transport::Udp)),
            ("dns://192.0.2.1", "192.0.2.1", is(Transport::Udp)),
            ("tcp://192.0.2.1:54", "192.0.2.1:54", is(Transport::Tcp)),
            (
                "tls://[2001:db8::1]:853",
                "[2001:db8::1]:853",
                is(Transport::Dot),
            ),
            ("dot://ns1.example", "ns1.example", is(Transport::Dot)),
            ("quic://ns1.example", "ns1.example", is(Transport::Doq)),
            (
                "h3://ns1.example/q",
                "https://ns1.example/q",
                is(Transport::Doh3),
            ),
            (
                "https://ns1.example/q",
                "https://ns1.example/q",
                Some(Scheme::Http),
            ),
            (
                "http://ns1.example/q",
                "http://ns1.example/q",
                Some(Scheme::Http),
            ),
        ] {
            let expected = Endpoint {
                server: server.to_owned(),
                scheme,
            };
            assert_eq!(Endpoint::read(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_uri_sets_the_transport_of_the_run() {
        for (flags, transport, server) in [
            ("-s 192.0.2.1", Transport::Udp, "192.0.2.1"),
            ("-s 192.0.2.1 -t tls", Transport::Dot, "192.0.2.1"),
            ("-s tcp://192.0.2.1:54", Transport::Tcp, "192.0.2.1:54"),
            ("-s tls://192.0.2.1 -t dot", Transport::Dot, "192.0.2.1"),
            ("-s https://a/q", Transport::Doh2, "https://a/q"),
            ("-s https://a/q -t doh3", Transport::Doh3, "https://a/q"),
            ("-s h3://a/q", Transport::Doh3, "https://a/q"),
            ("-s quic://a -s b", Transport::Doq, "a"),
        ] {
            let words = ["throng", "run"].into_iter().chain(flags.split(' '));
            let parsed = crate::command_line::parse(words.map(Into::into).collect()).unwrap();
            let crate::args::Command::Run(command) = parsed.command else {
                panic!("it is a run");
            };
            let run = command.run;
            assert_eq!(
                (run.transport, run.server[0].as_str()),
                (transport, server),
                "{flags}"
            );
            // A scenario reads the flags as they were given.
            let given = run.given.iter().find(|given| given.name == "transport");
            let given = given.map(|given| given.values[0].parse());
            let is_udp = transport == Transport::Udp;
            assert_eq!(given, (!is_udp).then_some(Ok(transport)), "{flags}");
        }
    }

    #[test]
    fn what_is_not_one_server_is_refused_with_the_form() {
        for (text, what, cure) in [
            ("a,b", "more than one server", "--server a --server b"),
            (
                "a,b,c",
                "more than one server",
                "--server a --server b --server c",
            ),
            ("192.0.2.1#dns.example", "not a port", "--tls-name"),
            ("192.0.2.1#99999", "not a port", "192.0.2.1:PORT"),
            ("tcp://192.0.2.1/path", "has a path", "tcp://192.0.2.1"),
            ("sdns://AgcAAAAA", "DNS stamps", "tls://"),
            ("ftp://192.0.2.1", "`ftp` is not a scheme", "udp, tcp, tls"),
            ("://x", "`` is not a scheme", "udp"),
        ] {
            let reason = Endpoint::read(text).unwrap_err();
            let (found, hint) = reason.split_once(super::super::values::CURE).unwrap();
            assert!(found.contains(what), "{text}: {found}");
            assert!(hint.contains(cure), "{text}: {hint}");
        }
    }
}
