//! Knot DNS, by `knotc` and the counters of `mod-stats`.

use super::{Access, Origin, Profile, Row};

/// `knotc stats`.
pub const KNOT: Profile = Profile {
    name: "knot",
    product: "Knot DNS",
    access: Access::KnotControl,
    place: "/run/knot/knot.sock",
    rows: ROWS,
    version: Origin::None,
    started: Origin::None,
    programs: &["knotd"],
    set_up: "`mod-stats` with `request-protocol: on` in the default template",
};

const ROWS: &[Row] = &[
    Row::counter(
        "queries",
        "queries",
        &["mod-stats.request-protocol"],
        "queries of clients",
    )
    .or_zero("mod-stats."),
    Row::counter(
        "queries.udp",
        "queries",
        &[
            "mod-stats.request-protocol{item=\"udp4\"}",
            "mod-stats.request-protocol{item=\"udp6\"}",
            "mod-stats.request-protocol{item=\"udp4-xdp\"}",
            "mod-stats.request-protocol{item=\"udp6-xdp\"}",
        ],
        "over UDP",
    )
    .or_zero("mod-stats."),
    Row::counter(
        "queries.tcp",
        "queries",
        &[
            "mod-stats.request-protocol{item=\"tcp4\"}",
            "mod-stats.request-protocol{item=\"tcp6\"}",
            "mod-stats.request-protocol{item=\"tcp4-xdp\"}",
            "mod-stats.request-protocol{item=\"tcp6-xdp\"}",
        ],
        "over TCP",
    )
    .or_zero("mod-stats."),
    Row::counter(
        "queries.dot",
        "queries",
        &[
            "mod-stats.request-protocol{item=\"tls4\"}",
            "mod-stats.request-protocol{item=\"tls6\"}",
        ],
        "over TLS",
    )
    .or_zero("mod-stats."),
    Row::counter(
        "queries.doq",
        "queries",
        &[
            "mod-stats.request-protocol{item=\"quic4\"}",
            "mod-stats.request-protocol{item=\"quic6\"}",
            "mod-stats.request-protocol{item=\"quic4-xdp\"}",
            "mod-stats.request-protocol{item=\"quic6-xdp\"}",
        ],
        "over QUIC",
    )
    .or_zero("mod-stats."),
    Row::counter(
        "responses.noerror",
        "responses",
        &["mod-stats.response-code{item=\"NOERROR\"}"],
        "responses with RCODE NOERROR",
    )
    .or_zero("mod-stats."),
    Row::counter(
        "responses.nxdomain",
        "responses",
        &["mod-stats.response-code{item=\"NXDOMAIN\"}"],
        "responses with RCODE NXDOMAIN",
    )
    .or_zero("mod-stats."),
    Row::counter(
        "responses.servfail",
        "responses",
        &["mod-stats.response-code{item=\"SERVFAIL\"}"],
        "responses with RCODE SERVFAIL",
    )
    .or_zero("mod-stats."),
    Row::counter(
        "responses.refused",
        "responses",
        &["mod-stats.response-code{item=\"REFUSED\"}"],
        "responses with RCODE REFUSED",
    )
    .or_zero("mod-stats."),
    Row::counter(
        "octets.received",
        "bytes",
        &["mod-stats.request-bytes"],
        "bytes of queries",
    )
    .or_zero("mod-stats."),
    Row::counter(
        "octets.sent",
        "bytes",
        &["mod-stats.response-bytes"],
        "bytes of responses",
    )
    .or_zero("mod-stats."),
    Row::gauge(
        "zones",
        "zones",
        &["server.zone-count"],
        "zones that are loaded",
    ),
];
