//! Unbound, by its remote control.

use super::{Access, Origin, Profile, Row};

/// Remote control with `stats_noreset`.
pub const UNBOUND: Profile = Profile {
    name: "unbound",
    product: "Unbound",
    access: Access::UnboundControl,
    place: "/run/unbound.ctl, `host:8953`, `tcp://host:port` or `command:FILE`",
    rows: ROWS,
    version: Origin::None,
    started: Origin::None,
    programs: &["unbound"],
    set_up: "`remote-control: control-enable: yes`, by types of queries `extended-statistics: yes`",
};

const ROWS: &[Row] = &[
    Row::counter(
        "queries",
        "queries",
        &["total.num.queries"],
        "queries of clients",
    ),
    Row::counter(
        "thread.queries",
        "queries",
        &["thread.num.queries"],
        "queries of this thread",
    )
    .each("thread"),
    Row::counter(
        "queries.tcp",
        "queries",
        &["num.query.tcp"],
        "over TCP and TLS (with `extended-statistics`)",
    ),
    Row::counter("queries.dot", "queries", &["num.query.tls"], "over TLS"),
    Row::counter("queries.doh", "queries", &["num.query.https"], "over HTTPS"),
    Row::counter(
        "queries.dropped",
        "queries",
        &["total.num.queries_ip_ratelimited", "unwanted.queries"],
        "queries that it did not answer: rate limits and access lists",
    ),
    Row::counter(
        "cache.hits",
        "lookups",
        &["total.num.cachehits"],
        "queries that the cache answered",
    ),
    Row::counter(
        "cache.misses",
        "lookups",
        &["total.num.cachemiss"],
        "queries that it could not answer",
    ),
    Row::counter(
        "queries.recursive",
        "queries",
        &["total.num.recursivereplies"],
        "queries answered by asking others",
    ),
    Row::gauge(
        "requestlist",
        "queries",
        &["total.requestlist.current.all"],
        "queries that wait for recursion",
    ),
    Row::gauge(
        "requestlist.most",
        "queries",
        &["total.requestlist.max"],
        "most of them at once",
    ),
    Row::counter(
        "requestlist.exceeded",
        "queries",
        &["total.requestlist.exceeded"],
        "queries that were dropped because the list was full",
    ),
    Row::counter(
        "requestlist.overwritten",
        "queries",
        &["total.requestlist.overwritten"],
        "queries that gave way to newer ones",
    ),
    Row::gauge(
        "upstream.time",
        "seconds",
        &["total.recursion.time.avg"],
        "mean time of recursion, of all since it began",
    ),
    Row::counter(
        "upstream.queries",
        "queries",
        &["num.query.udpout", "num.query.tcpout"],
        "queries to other servers",
    ),
    Row::gauge(
        "clients.tcp",
        "connections",
        &["total.tcpusage"],
        "TCP buffers in use",
    ),
    Row::counter(
        "responses.noerror",
        "responses",
        &["num.answer.rcode.NOERROR"],
        "responses with RCODE NOERROR",
    ),
    Row::counter(
        "responses.nxdomain",
        "responses",
        &["num.answer.rcode.NXDOMAIN"],
        "responses with RCODE NXDOMAIN",
    ),
    Row::counter(
        "responses.servfail",
        "responses",
        &["num.answer.rcode.SERVFAIL"],
        "responses with RCODE SERVFAIL",
    ),
    Row::counter(
        "responses.refused",
        "responses",
        &["num.answer.rcode.REFUSED"],
        "responses with RCODE REFUSED",
    ),
    Row::gauge(
        "cache.memory",
        "bytes",
        &["mem.cache.rrset", "mem.cache.message"],
        "memory of the caches",
    ),
];
