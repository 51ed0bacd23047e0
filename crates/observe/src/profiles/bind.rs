//! BIND 9, by its statistics channel.

use super::{Access, Origin, Profile, Row};

/// The statistics channel, in JSON or XML.
pub const BIND: Profile = Profile {
    name: "bind",
    product: "BIND",
    access: Access::BindChannel,
    place: "http://127.0.0.1:8053/",
    rows: ROWS,
    version: Origin::Text("version"),
    started: Origin::Text("boot-time"),
    programs: &["named", "isc-net-0000"],
    set_up: "`statistics-channels { inet 127.0.0.1 port 8053 allow { 127.0.0.1; }; };`",
};

const ROWS: &[Row] = &[
    Row::counter(
        "queries",
        "queries",
        &["nsstat.QryUDP", "nsstat.QryTCP"],
        "queries of clients",
    )
    .or_zero("opcode."),
    Row::counter("queries.udp", "queries", &["nsstat.QryUDP"], "over UDP").or_zero("opcode."),
    Row::counter(
        "queries.tcp",
        "queries",
        &["nsstat.QryTCP"],
        "over TCP, TLS and HTTP",
    )
    .or_zero("opcode."),
    Row::counter(
        "messages",
        "messages",
        &["nsstat.Requestv4", "nsstat.Requestv6"],
        "messages of clients of any kind",
    )
    .or_zero("opcode."),
    Row::counter("responses", "responses", &["nsstat.Response"], "responses").or_zero("opcode."),
    Row::counter(
        "responses.truncated",
        "responses",
        &["nsstat.TruncatedResp"],
        "responses with TC",
    )
    .or_zero("opcode."),
    Row::counter(
        "responses.noerror",
        "responses",
        &["rcode.NOERROR"],
        "responses with RCODE NOERROR",
    )
    .or_zero("rcode."),
    Row::counter(
        "responses.nxdomain",
        "responses",
        &["rcode.NXDOMAIN"],
        "responses with RCODE NXDOMAIN",
    )
    .or_zero("rcode."),
    Row::counter(
        "responses.servfail",
        "responses",
        &["rcode.SERVFAIL"],
        "responses with RCODE SERVFAIL",
    )
    .or_zero("rcode."),
    Row::counter(
        "responses.refused",
        "responses",
        &["rcode.REFUSED"],
        "responses with RCODE REFUSED",
    )
    .or_zero("rcode."),
    Row::counter(
        "queries.recursive",
        "queries",
        &["nsstat.QryRecursion"],
        "queries that it resolved with other servers",
    )
    .or_zero("opcode."),
    Row::counter(
        "queries.dropped",
        "queries",
        // Those that RRL dropped (RateDropped) are among them.
        &["nsstat.QryDropped"],
        "queries that it dropped",
    )
    .or_zero("opcode."),
    Row::gauge(
        "clients.recursive",
        "clients",
        &["nsstat.RecursClients"],
        "clients that wait for recursion",
    )
    .or_zero("opcode."),
    Row::gauge(
        "clients.tcp",
        "connections",
        &["sockstat.TCP4Active", "sockstat.TCP6Active"],
        "TCP sockets in use",
    )
    .or_zero("opcode."),
    Row::gauge(
        "clients.tcp_most",
        "connections",
        &["nsstat.TCPConnHighWater"],
        "most TCP clients at once since it began",
    )
    .or_zero("opcode."),
    Row::counter(
        "connections",
        "connections",
        &["sockstat.TCP4Accept", "sockstat.TCP6Accept"],
        "TCP connections that it accepted",
    )
    .or_zero("opcode."),
    Row::counter(
        "connections.failed",
        "connections",
        &["sockstat.TCP4AcceptFail", "sockstat.TCP6AcceptFail"],
        "TCP connections that it could not accept",
    )
    .or_zero("opcode."),
    Row::counter(
        "receive_errors",
        "datagrams",
        &["sockstat.UDP4RecvErr", "sockstat.UDP6RecvErr"],
        "errors in receiving",
    )
    .or_zero("opcode."),
    Row::counter(
        "send_errors",
        "datagrams",
        &["sockstat.UDP4SendErr", "sockstat.UDP6SendErr"],
        "errors in sending",
    )
    .or_zero("opcode."),
    Row::counter(
        "cache.hits",
        "lookups",
        &["cachestats.QueryHits"],
        "queries that the cache answered",
    )
    .or_zero("opcode."),
    Row::counter(
        "cache.misses",
        "lookups",
        &["cachestats.QueryMisses"],
        "queries that it could not answer",
    )
    .or_zero("opcode."),
    Row::counter(
        "upstream.queries",
        "queries",
        &["resstats.Queryv4", "resstats.Queryv6"],
        "queries to other servers",
    )
    .or_zero("opcode."),
    Row::counter(
        "upstream.timeouts",
        "queries",
        &["resstats.QueryTimeout"],
        "of them without answer in time",
    )
    .or_zero("opcode."),
    Row::gauge("memory", "bytes", &["memory.InUse"], "memory that it uses"),
];
