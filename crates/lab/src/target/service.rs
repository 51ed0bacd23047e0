//! The services of a target, and their addresses.

use std::net::{IpAddr, SocketAddr};

use proto::Transport;

/// The path at which every target answers DNS over HTTPS (RFC 8484).
pub const DOH_PATH: &str = "/dns-query";

/// A transport that a target can offer beside UDP and TCP, on its own port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// DNS over TLS (RFC 7858).
    Dot,
    /// DNS over HTTPS with HTTP/2 (RFC 8484).
    Doh2,
    /// The same without TLS, HTTP/2 with prior knowledge (RFC 9113, section 3.3), for servers
    /// behind a proxy.
    H2c,
    /// DNS over HTTPS with HTTP/3 (RFC 9114).
    Doh3,
    /// DNS over QUIC (RFC 9250).
    Doq,
}

impl Service {
    /// All of them.
    pub const ALL: [Service; 5] = [
        Service::Dot,
        Service::Doh2,
        Service::H2c,
        Service::Doh3,
        Service::Doq,
    ];

    /// Its name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Service::Dot => "DNS over TLS",
            Service::Doh2 => "DNS over HTTP/2 with TLS",
            Service::H2c => "DNS over HTTP/2 without TLS",
            Service::Doh3 => "DNS over HTTP/3",
            Service::Doq => "DNS over QUIC",
        }
    }

    /// Its name in templates and on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Service::Dot => "dot",
            Service::Doh2 => "doh2",
            Service::H2c => "h2c",
            Service::Doh3 => "doh3",
            Service::Doq => "doq",
        }
    }

    /// True if its port is a UDP port.
    pub const fn is_quic(self) -> bool {
        matches!(self, Service::Doh3 | Service::Doq)
    }

    /// True if it needs a certificate.
    pub const fn has_tls(self) -> bool {
        !matches!(self, Service::H2c)
    }

    /// The service for `transport`; `None` for UDP and TCP.
    pub const fn of(transport: Transport) -> Option<Service> {
        match transport {
            Transport::Udp | Transport::Tcp => None,
            Transport::Dot => Some(Service::Dot),
            Transport::Doh2 => Some(Service::Doh2),
            Transport::Doh3 => Some(Service::Doh3),
            Transport::Doq => Some(Service::Doq),
        }
    }
}

/// Where a target listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    pub(super) addresses: Vec<IpAddr>,
    pub(super) do53_port: u16,
    pub(super) has_udp: bool,
    pub(super) services: Vec<(Service, u16)>,
}

impl Endpoints {
    /// The first address for UDP and TCP (the same port for both; HAProxy has TCP alone); IPv4
    /// when both families are on.
    pub fn do53(&self) -> SocketAddr {
        SocketAddr::new(self.addresses[0], self.do53_port)
    }

    /// All addresses for UDP and TCP, IPv4 first.
    pub fn do53_all(&self) -> Vec<SocketAddr> {
        self.all_with(self.do53_port)
    }

    /// The first address of a service, if the target was started with it.
    pub fn service(&self, service: Service) -> Option<SocketAddr> {
        self.service_port(service)
            .map(|port| SocketAddr::new(self.addresses[0], port))
    }

    /// The first address for a transport, if the target has it.
    pub fn address(&self, transport: Transport) -> Option<SocketAddr> {
        match transport {
            Transport::Udp => self.has_udp.then(|| self.do53()),
            Transport::Tcp => Some(self.do53()),
            _ => self.service(Service::of(transport)?),
        }
    }

    /// Each transport that the target has, with the first address.
    pub fn addresses_by_transport(&self) -> Vec<(Transport, SocketAddr)> {
        let address = |it: Transport| Some((it, self.address(it)?));
        Transport::ALL.into_iter().filter_map(address).collect()
    }

    /// The first address for DNS over TLS, if the target was started with it.
    pub fn dot(&self) -> Option<SocketAddr> {
        self.service(Service::Dot)
    }

    pub(super) fn service_port(&self, service: Service) -> Option<u16> {
        let found = self.services.iter().find(|(each, _)| *each == service);
        found.map(|(_, port)| *port)
    }

    /// Every service with each of its addresses.
    pub(super) fn services_all(&self) -> impl Iterator<Item = (Service, SocketAddr)> {
        self.services.iter().flat_map(|(service, port)| {
            let at = move |address: &IpAddr| (*service, SocketAddr::new(*address, *port));
            self.addresses.iter().map(at)
        })
    }

    fn all_with(&self, port: u16) -> Vec<SocketAddr> {
        let at = |address: &IpAddr| SocketAddr::new(*address, port);
        self.addresses.iter().map(at).collect()
    }

    /// The ports that must be in LISTEN.
    pub(super) fn tcp_ports(&self) -> impl Iterator<Item = u16> {
        let streams = self.services.iter().filter(|(it, _)| !it.is_quic());
        std::iter::once(self.do53_port).chain(streams.map(|(_, port)| *port))
    }

    /// True if one of the ports is only for root and holders of CAP_NET_BIND_SERVICE
    /// (capabilities(7)).
    pub(super) fn has_low_port(&self) -> bool {
        const LOW: u16 = 1_024;
        self.tcp_ports().chain(self.udp_ports()).any(|it| it < LOW)
    }

    /// The ports that must be bound for UDP.
    pub(super) fn udp_ports(&self) -> impl Iterator<Item = u16> {
        let quic = self.services.iter().filter(|(it, _)| it.is_quic());
        let do53 = self.has_udp.then_some(self.do53_port);
        do53.into_iter().chain(quic.map(|(_, port)| *port))
    }
}
