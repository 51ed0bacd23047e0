//! What becomes of runs whose peer dies, stands still, lies, or breaks its protocol.

use measure::Limit::{Generator, Rate, Server, Unknown};
use measure::RunRecord;
use measure::counts::{Connections, Counts};
use proto::Transport::{self, Doh2, Doh3, Doq, Dot, Tcp, Udp};

use super::fault::{ALL, CONNECTED, Do, ENCRYPTED, Ends, Fault, HTTP, QUIC, STREAMS, Target, When};
use super::hostile::{Conduct, Manner, Peer};

const NONE: Fault = Fault::NONE;
/// DoT and DoH/2, which have a handshake of TLS on a stream.
const TLS: &[Transport] = &[Dot, Doh2];
/// Those that have a message ID to match.
const NUMBERED: &[Transport] = &[Udp, Tcp, Dot];
/// Those that have a stream for each query.
const EXCHANGES: &[Transport] = &[Doh2, Doq, Doh3];

fn counts(record: &RunRecord) -> &Counts {
    &record.total.counts
}

fn lost(record: &RunRecord) -> u64 {
    counts(record).lost()
}

fn connections(record: &RunRecord) -> Connections {
    record.connections()
}

/// Connections that the target ended, or that ended for what it did.
fn ended(record: &RunRecord) -> u64 {
    let all = connections(record);
    all.ended_by_target() + all.closed_for_violation.total()
}

fn exchanges(record: &RunRecord) -> u64 {
    counts(record).exchange_failures.total()
}

fn unexpected(record: &RunRecord) -> u64 {
    counts(record).unexpected.total() + exchanges(record)
}

fn handshakes_failed(record: &RunRecord) -> u64 {
    connections(record).failed.total()
}

const fn responder(name: &'static str, flags: &'static str) -> Fault {
    Fault {
        name,
        target: Target::Responder(flags),
        ..NONE
    }
}

const fn stream(name: &'static str, conduct: Conduct) -> Fault {
    Fault {
        name,
        over: &[Tcp],
        target: Target::Hostile(Peer::Stream(conduct)),
        ..NONE
    }
}

const fn datagrams(name: &'static str, manner: Manner) -> Fault {
    Fault {
        name,
        over: &[Udp],
        target: Target::Hostile(Peer::Datagrams(manner)),
        ..NONE
    }
}

/// A frame of DNS over a stream that is a response to nothing: ID 0x9999, one question, `x. A`.
const UNASKED: &[u8] = b"\0\x13\x99\x99\x81\x80\0\x01\0\0\0\0\0\0\x01x\0\0\x01\0\x01";
/// Frames of HTTP/2 (RFC 9113, section 4): SETTINGS, then GOAWAY before any stream.
const HTTP2_GOAWAY: &[u8] = b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";
/// SETTINGS, and the head of a frame that is longer than any may be.
const HTTP2_LONG_FRAME: &[u8] = b"\0\0\0\x04\0\0\0\0\0\xff\xff\xff\0\0\0\0\0\x01";
/// SETTINGS, and a field block that refers to an entry of the table that is not there.
const HTTP2_BAD_FIELDS: &[u8] = b"\0\0\0\x04\0\0\0\0\0\0\0\x01\x01\x04\0\0\0\x01\xff";

pub(crate) const FAULTS: &[Fault] = &[
    // It dies or stands still.
    Fault {
        name: "killed",
        over: ALL,
        meanwhile: &[(When::Shown(4), Do::Kill)],
        ends: Ends::measured(&[Server], "got no response").seen(lost),
        ..NONE
    },
    Fault {
        name: "killed and started again",
        over: ALL,
        flags: "--duration 2s",
        meanwhile: &[(When::Shown(4), Do::Kill), (When::Shown(8), Do::Restart)],
        ends: Ends::measured(&[Server], "of the run"),
        ..NONE
    },
    Fault {
        name: "stands still for a while",
        over: ALL,
        flags: "--duration 2s",
        meanwhile: &[
            (When::Shown(4), Do::Shell("kill -s STOP $TARGET")),
            (When::Shown(11), Do::Shell("kill -s CONT $TARGET")),
        ],
        ends: Ends::measured(&[Server], "of the run nothing came back"),
        ..NONE
    },
    Fault {
        name: "stands still to the end",
        over: ALL,
        meanwhile: &[(When::Shown(4), Do::Shell("kill -s STOP $TARGET"))],
        ends: Ends::measured(&[Server], "nothing came back").seen(lost),
        ..NONE
    },
    Fault {
        name: "stalls by itself",
        over: &[Udp, Dot, Doh3],
        target: Target::Responder("--stall at=0s,for=300ms,every=700ms"),
        flags: "--duration 2s --timeout 2s",
        ends: Ends::measured(&[Server], "nothing came back"),
        ..NONE
    },
    // Nobody is there, or somebody else.
    Fault {
        name: "nobody listens",
        over: &[Udp, Tcp, Dot, Doh2],
        target: Target::Nobody,
        ends: Ends::refused("nothing is listening on"),
        ..NONE
    },
    Fault {
        name: "nobody listens for QUIC",
        over: QUIC,
        target: Target::Nobody,
        ends: Ends::refused("connection refused"),
        ..NONE
    },
    Fault {
        name: "nobody listens, and nobody looks first",
        over: ALL,
        target: Target::Nobody,
        flags: "--no-preflight",
        ends: Ends::in_vain("no response to"),
        ..NONE
    },
    Fault {
        name: "speaks DoT, not HTTPS",
        over: &[Doh2],
        target: Target::Speaks(Dot),
        ends: Ends::refused("the TLS handshake with"),
        ..NONE
    },
    Fault {
        name: "speaks plain TCP, not TLS",
        over: TLS,
        target: Target::Speaks(Tcp),
        ends: Ends::refused("the TLS handshake with"),
        ..NONE
    },
    Fault {
        name: "speaks UDP, not QUIC",
        over: QUIC,
        target: Target::Speaks(Udp),
        ends: Ends::refused("no QUIC server answers at"),
        ..NONE
    },
    Fault {
        name: "speaks TLS, not plain TCP",
        over: &[Tcp],
        target: Target::Speaks(Dot),
        ends: Ends::in_vain("no response to"),
        ..NONE
    },
    Fault {
        name: "knows no ALPN",
        over: &[Doh2],
        target: Target::Hostile(Peer::WithoutAlpn(Conduct::Hold)),
        ends: Ends::refused("ALPN"),
        ..NONE
    },
    Fault {
        name: "has another ALPN",
        over: QUIC,
        flags: "--tls-insecure --tls-alpn nonsense",
        ends: Ends::refused("the TLS handshake with"),
        ..NONE
    },
    // Its certificate.
    Fault {
        name: "certificate of nobody",
        over: ENCRYPTED,
        flags: "--tls-name localhost",
        ends: Ends::refused("it is not signed by a trusted authority"),
        ..NONE
    },
    Fault {
        name: "certificate of another name",
        over: ENCRYPTED,
        target: Target::Responder("--write-certificate $IN/ca.pem"),
        flags: "--tls-ca $IN/ca.pem --tls-name other.example",
        ends: Ends::refused("the TLS handshake with"),
        ..NONE
    },
    Fault {
        name: "another certificate from mid-run on",
        over: TLS,
        target: Target::Responder("--write-certificate $IN/ca.pem"),
        flags: "--tls-ca $IN/ca.pem --tls-name localhost --duration 2s",
        meanwhile: &[(When::Shown(4), Do::Kill), (When::Shown(7), Do::Restart)],
        ends: Ends::measured(&[Server], "TLS certificate refused").seen(handshakes_failed),
        ..NONE
    },
    Fault {
        name: "another certificate from mid-run on, for new connections of QUIC",
        over: QUIC,
        target: Target::Responder("--write-certificate $IN/ca.pem"),
        flags: "--tls-ca $IN/ca.pem --tls-name localhost --duration 2s --timeout 2s \
                --queries-per-connection 20",
        meanwhile: &[(When::Shown(4), Do::Kill), (When::Shown(7), Do::Restart)],
        ends: Ends::measured(&[Server], "TLS certificate refused").seen(handshakes_failed),
        ..NONE
    },
    Fault {
        name: "wants a certificate of clients",
        over: ENCRYPTED,
        before: "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
                 -subj /CN=nobody -keyout $IN/client-key.pem -out $IN/client-ca.pem",
        target: Target::Responder("--tls-client-ca $IN/client-ca.pem"),
        flags: "--tls-insecure",
        ends: Ends::in_vain("certificate_required"),
        ..NONE
    },
    Fault {
        name: "only TLS 1.2",
        over: TLS,
        target: Target::Responder("--tls-version 1.2"),
        flags: "--tls-insecure --tls-version 1.3",
        ends: Ends::refused("the TLS handshake with"),
        ..NONE
    },
    // What it does to connections.
    Fault {
        over: TLS,
        ends: Ends::refused("the target closed the connection"),
        ..stream("closes each connection at once", Conduct::Close)
    },
    Fault {
        ends: Ends::in_vain("no response to").seen(ended),
        ..stream("closes each TCP connection at once", Conduct::Close)
    },
    Fault {
        over: TLS,
        ends: Ends::refused("the TLS handshake with"),
        ..stream("resets each connection", Conduct::Reset)
    },
    Fault {
        ends: Ends::in_vain("no response to").seen(ended),
        ..stream("resets each TCP connection", Conduct::Reset)
    },
    Fault {
        over: TLS,
        flags: "--timeout 500ms",
        ends: Ends::refused("no response in time"),
        ..stream("reads nothing of the handshake", Conduct::Hold)
    },
    Fault {
        ends: Ends::in_vain("timed out"),
        ..stream("reads nothing", Conduct::Hold)
    },
    Fault {
        over: TLS,
        target: Target::Hostile(Peer::InTls(Conduct::Hold)),
        ends: Ends::in_vain("no response to"),
        ..stream("reads nothing behind the handshake", Conduct::Hold)
    },
    Fault {
        over: STREAMS,
        target: Target::Hostile(Peer::Unaccepted),
        flags: "--timeout 500ms",
        ends: Ends::refused("did not answer over TCP in time"),
        ..stream("accepts nobody", Conduct::Hold)
    },
    Fault {
        over: STREAMS,
        ends: Ends::measured(&[Server, Unknown, Rate], "got no response").seen(ended),
        ..responder(
            "resets after 20 queries",
            "--end-after 20:reset --delay 5ms",
        )
    },
    Fault {
        over: QUIC,
        ends: Ends::measured(&[Server, Unknown, Rate], "").seen(ended),
        ..responder("forgets connections", "--end-after 20:reset --delay 5ms")
    },
    Fault {
        over: CONNECTED,
        ends: Ends::measured(&[Server, Unknown, Rate], "").seen(ended),
        ..responder(
            "closes after 20 queries",
            "--end-after 20:close --delay 5ms",
        )
    },
    Fault {
        over: STREAMS,
        ends: Ends::measured(&[Server, Unknown, Rate], "").seen(ended),
        ..responder("closes its half after 20", "--end-after 20:half-close")
    },
    Fault {
        over: CONNECTED,
        ends: Ends::measured(&[Server, Unknown], "got no response").seen(lost),
        ..responder("stops reading after 20", "--end-after 20:stop-reading")
    },
    Fault {
        over: TLS,
        ends: Ends::measured(&[Server, Unknown, Rate], "").seen(ended),
        ..responder("TLS alert after 20", "--end-after 20:tls-alert --delay 5ms")
    },
    Fault {
        over: HTTP,
        ends: Ends::measured(&[Server, Unknown, Rate], "").seen(ended),
        ..responder("GOAWAY after 20", "--end-after 20:goaway")
    },
    Fault {
        over: QUIC,
        ends: Ends::measured(&[Server, Unknown, Rate], "").seen(ended),
        ..responder(
            "CONNECTION_CLOSE after 20",
            "--end-after 20:error=7 --delay 5ms",
        )
    },
    Fault {
        over: CONNECTED,
        flags: "--clients 100 --no-preflight",
        ends: Ends::measured(&[Server, Rate, Unknown], "").seen(ended),
        ..responder("closes what is idle for 100 ms", "--idle-timeout 100ms")
    },
    Fault {
        over: STREAMS,
        flags: "--clients 8",
        ends: Ends::measured(&[Server], "clients"),
        ..responder("serves 3 clients of 8", "--tcp-clients 3")
    },
    // What it does to QUIC.
    Fault {
        over: QUIC,
        ends: Ends::measured(&[Rate], ""),
        ..responder("demands a token (Retry)", "--quic-retry 1")
    },
    Fault {
        over: QUIC,
        ends: Ends::refused("version"),
        ..responder("no version of QUIC", "--quic-version-negotiation 1")
    },
    Fault {
        over: QUIC,
        ends: Ends::refused("CONNECTION_REFUSED"),
        ..responder("refuses QUIC connections", "--quic-refuse 1")
    },
    Fault {
        over: QUIC,
        flags: "--timeout 500ms",
        ends: Ends::refused("no response in time"),
        ..responder("ignores QUIC connections", "--quic-ignore 1")
    },
    Fault {
        over: QUIC,
        flags: "--timeout 500ms",
        ends: Ends::refused("no response in time"),
        ..datagrams("noise in place of QUIC", Manner::Instead(&[0x5a; 1200]))
    },
    Fault {
        over: QUIC,
        flags: "--timeout 500ms",
        ends: Ends::refused("no response in time"),
        ..datagrams("sends QUIC back", Manner::Echo)
    },
    Fault {
        over: &[Doq],
        ends: Ends::measured(&[Generator], "STOP_SENDING").seen(ended),
        ..responder("stops streams of DoQ", "--doq-stop-sending")
    },
    // What it answers.
    Fault {
        over: ALL,
        ends: Ends::measured(&[Unknown, Server, Generator], "got no response").seen(lost),
        ..responder("garbage for a third of the responses", "--garbage 0.3")
    },
    Fault {
        over: NUMBERED,
        ends: Ends::in_vain("no response to").seen(unexpected),
        ..responder("another ID in all responses", "--wrong-id 1")
    },
    Fault {
        over: EXCHANGES,
        ends: Ends::in_vain("no response to"),
        ..responder("another ID where there is none", "--wrong-id 1")
    },
    Fault {
        over: ALL,
        ends: Ends::in_vain("no response to").seen(unexpected),
        ..responder("another question in all responses", "--wrong-question 1")
    },
    Fault {
        over: ALL,
        ends: Ends::in_vain("no response to"),
        ..responder("nothing", "--loss 1")
    },
    Fault {
        over: ALL,
        ends: Ends::measured(&[Unknown], "got no response").seen(lost),
        ..responder("nothing to a fifth", "--loss 0.2")
    },
    Fault {
        over: &[Udp, Doq],
        ends: Ends::measured(&[Unknown, Server], "got no response").seen(lost),
        ..responder(
            "200 queries a second, drops others",
            "--ceiling 200,then=drop",
        )
    },
    Fault {
        over: ALL,
        ends: Ends::measured(&[Unknown], "SERVFAIL"),
        ..responder("SERVFAIL", "--rcodes SERVFAIL=1")
    },
    Fault {
        over: NUMBERED,
        ends: Ends::measured(&[Rate], "").seen(|it| counts(it).duplicate),
        ..responder("each response twice", "--duplicate 1")
    },
    Fault {
        over: NUMBERED,
        ends: Ends::measured(&[Rate, Unknown], "").seen(|it| counts(it).truncated),
        ..responder("all truncated", "--truncate 1")
    },
    Fault {
        flags: "--tcp-fallback",
        ends: Ends::measured(&[Rate, Unknown, Server], "")
            .seen(|it| counts(it).tcp_fallback.timeouts),
        ..responder("truncated, and nobody listens for TCP", "--truncate 1")
    },
    Fault {
        over: ALL,
        flags: "--rate 300 --timeout 5s --edns-size 65535",
        ends: Ends::measured(&[Rate], ""),
        ..responder("64 KB in each response", "--oversize 1")
    },
    Fault {
        over: HTTP,
        ends: Ends::in_vain("404"),
        ..responder("HTTP 404", "--http-statuses 404=1")
    },
    Fault {
        over: HTTP,
        ends: Ends::measured(&[Server], "500").seen(exchanges),
        ..responder("HTTP 500 to half", "--http-statuses 500=0.5")
    },
    Fault {
        over: HTTP,
        ends: Ends::measured(&[Server], "429").seen(exchanges),
        ..responder("HTTP 429 to half", "--http-statuses 429=0.5")
    },
    Fault {
        over: EXCHANGES,
        ends: Ends::measured(&[Server], "answered without a DNS message").seen(exchanges),
        ..responder("resets a third of the streams", "--reset-streams 0.3")
    },
    Fault {
        ends: Ends::in_vain("no response to"),
        ..datagrams("answers from another port", Manner::OtherPort)
    },
    Fault {
        ends: Ends::in_vain("no response to").seen(unexpected),
        ..datagrams("sends queries back", Manner::Echo)
    },
    Fault {
        ends: Ends::measured(&[Rate], "").seen(unexpected),
        ..datagrams("an empty datagram before each", Manner::Before(b"", 1))
    },
    Fault {
        ends: Ends::measured(&[Rate], "").seen(unexpected),
        ..datagrams(
            "20 datagrams of noise before each",
            Manner::Before(&[0xff; 99], 20),
        )
    },
    Fault {
        over: &[Tcp, Dot],
        target: Target::Hostile(Peer::InTls(Conduct::Trickle)),
        flags: "--rate 300 --timeout 5s",
        ends: Ends::measured(&[Rate], ""),
        ..stream("one byte at a time", Conduct::Trickle)
    },
    Fault {
        over: &[Tcp, Dot],
        target: Target::Hostile(Peer::InTls(Conduct::CutOff)),
        ends: Ends::in_vain("no response to").seen(ended),
        ..stream("cuts off its first response", Conduct::CutOff)
    },
    Fault {
        over: &[Tcp, Dot],
        target: Target::Hostile(Peer::InTls(Conduct::Overlong)),
        ends: Ends::in_vain("no response to"),
        ..stream("promises more bytes than it sends", Conduct::Overlong)
    },
    Fault {
        over: &[Tcp, Dot],
        target: Target::Hostile(Peer::InTls(Conduct::After(UNASKED))),
        ends: Ends::measured(&[Rate], "").seen(unexpected),
        ..stream("a response that nobody asked for", Conduct::Hold)
    },
    Fault {
        over: &[Tcp, Dot],
        target: Target::Hostile(Peer::InTls(Conduct::After(b"\0\0"))),
        ends: Ends::measured(&[Rate], ""),
        ..stream("empty frames between responses", Conduct::Hold)
    },
    Fault {
        over: STREAMS,
        target: Target::Hostile(Peer::InTls(Conduct::Send(&[0x5a; 4096], 16))),
        ends: Ends::in_vain("no response to"),
        ..stream("noise from the beginning", Conduct::Hold)
    },
    Fault {
        over: TLS,
        ends: Ends::refused("the TLS handshake with"),
        ..stream("noise in place of TLS", Conduct::Send(&[0x5a; 4096], 1))
    },
    Fault {
        over: &[Doh2],
        flags: "--server http://$SERVER/dns-query",
        ends: Ends::in_vain("no response to"),
        ..stream(
            "HTTP/1.1",
            Conduct::Reply(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        )
    },
    Fault {
        over: &[Doh2],
        target: Target::Hostile(Peer::InTls(Conduct::Reply(HTTP2_GOAWAY))),
        ends: Ends::in_vain("no response to"),
        ..stream("GOAWAY before any stream", Conduct::Hold)
    },
    Fault {
        over: &[Doh2],
        target: Target::Hostile(Peer::InTls(Conduct::Reply(HTTP2_LONG_FRAME))),
        ends: Ends::in_vain("no response to"),
        ..stream("a frame of 16 MB", Conduct::Hold)
    },
    Fault {
        over: &[Doh2],
        target: Target::Hostile(Peer::InTls(Conduct::Reply(HTTP2_BAD_FIELDS))),
        ends: Ends::in_vain("no response to"),
        ..stream("fields that cannot be read", Conduct::Hold)
    },
];
