//! Where a server is: the address in its name, or what the resolver of this host says.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use lab::run::{TargetScope, target_scope};

use settings::Run;

use crate::args::doh::Server;
use crate::failure::Failure;

/// Where the servers of a run are: the address of each, and its name or address without the port.
pub(crate) fn addresses_of(run: &Run) -> Result<Vec<(SocketAddr, String)>, Failure> {
    run.servers.iter().map(|it| address_of(it, run)).collect()
}

/// The address of a server, and its name or address without the port.
pub(crate) fn address_of(server: &str, run: &Run) -> Result<(SocketAddr, String), Failure> {
    let parts = Server::parse(server);
    refuse_user(parts.authority)?;
    refuse_foreign_letters(parts.authority)?;
    let port = parts.default_port(run.transport);
    let (target, host) = match HostAndPort::parse(parts.authority, port)? {
        HostAndPort::Address(address) => (address, address.ip().to_string()),
        HostAndPort::Name { host, port } => (resolve(host, port, run)?, host.to_owned()),
    };
    if let Some(meant) = with_port(parts.authority)
        && target_scope(meant.ip()) != TargetScope::Public
        && target_scope(target.ip()) == TargetScope::Public
    {
        return Err(Failure::usage(
            format!("--server {server}: that is an address without a port"),
            format!(
                "write [{}]:{} for the port of {0}",
                meant.ip(),
                meant.port()
            ),
        ));
    }
    refuse_no_host(target, server)?;
    Ok((target, host))
}

/// Refuses a URI with a user name, which no request has (RFC 9110, section 4.2.4), and does not
/// show it: a password may be with it.
fn refuse_user(authority: &str) -> Result<(), Failure> {
    match authority.rsplit_once('@') {
        None => Ok(()),
        Some((_, host)) => Err(Failure::usage(
            format!("--server: the URI of {host} has a user name, which is not sent"),
            "give an `authorization` field, as --doh-header @FILE",
        )),
    }
}

/// Refuses a name that is not as DNS has it: resolvers differ in what they do with it.
fn refuse_foreign_letters(authority: &str) -> Result<(), Failure> {
    match authority.is_ascii() {
        true => Ok(()),
        false => Err(Failure::usage(
            format!("--server {authority}: the name has characters outside ASCII"),
            format!("give its A-label form, which begins with xn-- (`idn2 {authority}` prints it)"),
        )),
    }
}

/// Refuses addresses that are not those of one host.
fn refuse_no_host(target: SocketAddr, server: &str) -> Result<(), Failure> {
    let ip = target.ip().to_canonical();
    let is_broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    if ip.is_multicast() || is_broadcast {
        let kind = if is_broadcast {
            "the broadcast address"
        } else {
            "a multicast address"
        };
        return Err(Failure::usage(
            format!("--server {server}: {ip} is {kind}, and load goes to one server"),
            "give the address of one server",
        ));
    }
    match target {
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0 => {
            Err(Failure::usage(
                format!("--server {server}: a link-local address needs its interface"),
                format!(
                    "write {}%INTERFACE, such as {0}%eth0 (`ip link` lists them)",
                    v6.ip()
                ),
            ))
        }
        _ => Ok(()),
    }
}

/// Why the name of a server has no address. What else is wrong with it, [`address_of`] says.
pub(crate) fn lookup_failure(server: &str) -> Option<String> {
    let authority = Server::parse(server).authority;
    refuse_user(authority).ok()?;
    match HostAndPort::parse(authority, 53) {
        Ok(HostAndPort::Name { host, port }) => look_up(host, port).err(),
        Ok(HostAndPort::Address(_)) | Err(_) => None,
    }
}

/// The address and port that somebody may have meant with an IPv6 address without brackets: the
/// last group of `::1:5300` is one of the address, and looks like a port.
fn with_port(authority: &str) -> Option<SocketAddr> {
    authority.parse::<IpAddr>().ok().filter(IpAddr::is_ipv6)?;
    let (address, port) = authority.rsplit_once(':')?;
    Some(SocketAddr::new(
        IpAddr::V6(address.parse().ok()?),
        port.parse().ok()?,
    ))
}

/// What a server is called.
enum HostAndPort<'a> {
    Address(SocketAddr),
    Name { host: &'a str, port: u16 },
}

impl<'a> HostAndPort<'a> {
    /// Reads `HOST`, `HOST:PORT`, an address, or `[IPV6]:PORT`.
    fn parse(authority: &'a str, default_port: u16) -> Result<Self, Failure> {
        if let Ok(address) = authority.parse::<SocketAddr>() {
            return Ok(HostAndPort::Address(address));
        }
        let bare = authority.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Ok(HostAndPort::Address(SocketAddr::new(address, default_port)));
        }
        if authority.contains('%') {
            return Self::parse_zoned(authority, default_port);
        }
        let Some((host, text)) = authority.rsplit_once(':') else {
            return Ok(HostAndPort::Name {
                host: authority,
                port: default_port,
            });
        };
        let port = parse_port(authority, text)?;
        Ok(HostAndPort::Name { host, port })
    }

    /// Reads `fe80::1%eth0` or `[fe80::1%eth0]:53`; the resolver of this host knows the interface.
    fn parse_zoned(authority: &'a str, default_port: u16) -> Result<Self, Failure> {
        let bracketed = authority
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'));
        let (host, port) = match bracketed {
            None => (authority, default_port),
            Some((host, "")) => (host, default_port),
            Some((host, rest)) => {
                let text = rest.strip_prefix(':').unwrap_or(rest);
                (host, parse_port(authority, text)?)
            }
        };
        Ok(HostAndPort::Name { host, port })
    }
}

fn parse_port(authority: &str, text: &str) -> Result<u16, Failure> {
    text.parse().map_err(|_| {
        Failure::usage(
            format!("--server {authority}: `{text}` is not a port"),
            "give HOST, HOST:PORT, or [IPV6]:PORT",
        )
    })
}

/// All addresses of a name, at least one, or why there is none.
fn look_up(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let addresses = (host, port).to_socket_addrs();
    let addresses: Vec<SocketAddr> = addresses.map_err(|error| error.to_string())?.collect();
    match addresses.is_empty() {
        true => Err("it has no address".to_owned()),
        false => Ok(addresses),
    }
}

fn resolve(host: &str, port: u16, run: &Run) -> Result<SocketAddr, Failure> {
    let addresses = look_up(host, port).map_err(|reason| {
        Failure::usage(
            format!("cannot resolve the server `{host}`: {reason}"),
            "check the name, or give an address",
        )
    })?;
    // Clients that bind to IPv6 addresses can only reach an IPv6 address.
    let local = run.generator.local_addresses.first();
    let wants_ipv6 = local.is_some_and(|text| text.contains(':'));
    let wanted = addresses.iter().find(|it| it.is_ipv6() == wants_ipv6);
    Ok(*wanted.unwrap_or(&addresses[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_that_an_address_without_brackets_seems_to_have_is_found() {
        let cases = [
            ("::1:5300", Some("[::1]:5300")),
            ("fd00::1:53", Some("[fd00::1]:53")),
            ("::1", None),
            ("[::1]:5300", None),
            ("::1:abcd", None),
            ("2001:db8::", None),
            ("127.0.0.1:53", None),
            ("localhost:53", None),
        ];
        for (text, meant) in cases {
            let found = with_port(text).map(|address| address.to_string());
            assert_eq!(found.as_deref(), meant, "{text}");
        }
    }
}
