//! DoH over HTTP/2 (RFC 8484), without TLS unless a test is about that: the crate's own client
//! against a worker on a network in memory.

use std::sync::Arc;

use driver::{Close, Event, SocketId};
use hickory_proto::op::{Message, ResponseCode};
use proto::doh::{DohRequest, Method};
use proto::exchange::ExchangeEnd;
use proto::http2::{Blocked, Continuation, ErrorCode, Http2Client, Http2Error, Http2Options};
use proto::tls::rustls::pki_types::ServerName;
use proto::tls::{ClientTls, ClientTlsOptions, Roots, client_config};
use proto::{Instant, Transport};
use responder::certificate::{SelfSigned, self_signed};
use responder::{Behaviour, ConnectionEnd, Delay, Limits, ResponderConfig, Stall};

use crate::network::{Target, at_ms, client, id, ms, query};

/// How an exchange ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Message(Vec<u8>),
    Status(u16),
    Other(String),
}

/// A client on one connection to a target.
struct Doh {
    target: Target,
    socket: SocketId,
    http2: Http2Client,
    out: Vec<u8>,
    ends: Vec<(u32, End)>,
    /// Results of the last bytes.
    progress: Result<Continuation, Http2Error>,
}

impl Doh {
    fn new(change: impl FnOnce(&mut ResponderConfig)) -> Doh {
        Doh::with(Method::Post, &Http2Options::default(), change)
    }

    fn behaving(change: impl FnOnce(&mut Behaviour)) -> Doh {
        Doh::new(|config| change(&mut config.behaviour))
    }

    fn with(
        method: Method,
        options: &Http2Options,
        change: impl FnOnce(&mut ResponderConfig),
    ) -> Doh {
        let mut target = Target::new(|config| {
            config.listen_http = vec![client(0)];
            change(config);
        });
        let socket = target.connect(Transport::Doh2);
        let request = DohRequest::new(method, "http://localhost/dns-query", &[]).unwrap();
        let mut out = Vec::new();
        let http2 = Http2Client::new(Arc::new(request), options, &mut out);
        let mut doh = Doh {
            target,
            socket,
            http2,
            out,
            ends: Vec::new(),
            progress: Ok(Continuation::Continues),
        };
        doh.exchange();
        doh
    }

    /// Sends queries with these IDs, which are their tokens, in one go.
    fn ask(&mut self, ids: std::ops::Range<u16>) {
        for id in ids {
            let message = query(id, "name.example A");
            let sent = self.http2.request(&message, u32::from(id), &mut self.out);
            assert_eq!(sent, Ok(()));
        }
        self.exchange();
    }

    /// Moves octets both ways until there are none left.
    fn exchange(&mut self) {
        loop {
            let up = std::mem::take(&mut self.out);
            if !up.is_empty() && self.target.stream(self.socket).closed.is_none() {
                self.target.send_bytes(self.socket, &up);
            }
            let down = std::mem::take(&mut self.target.stream(self.socket).received);
            if down.is_empty() {
                return;
            }
            let ends = &mut self.ends;
            self.progress = self.http2.handle_bytes(&down, &mut self.out, |token, end| {
                let end = match end {
                    ExchangeEnd::Message(message) => End::Message(message.to_vec()),
                    ExchangeEnd::HttpStatus(status) => End::Status(status),
                    other => End::Other(format!("{other:?}")),
                };
                ends.push((token, end));
            });
        }
    }

    fn run_until(&mut self, end: Instant) {
        self.target.run_until(end);
        self.exchange();
    }

    /// The tokens of the exchanges that ended since the last time, all with the answer to their
    /// own query.
    fn answered(&mut self) -> Vec<u32> {
        let check = |(token, end): (u32, End)| match end {
            End::Message(message) => {
                assert_eq!(u32::from(id(&message)), token);
                assert_eq!(message[3] & 15, 0, "NOERROR");
                token
            }
            other => panic!("{token}: {other:?}"),
        };
        std::mem::take(&mut self.ends)
            .into_iter()
            .map(check)
            .collect()
    }

    /// How all exchanges ended since the last time, if that is the same for all.
    fn all_ended(&mut self) -> (usize, End) {
        let ends = std::mem::take(&mut self.ends);
        let first = ends[0].1.clone();
        assert!(ends.iter().all(|(_, end)| *end == first), "{ends:?}");
        (ends.len(), first)
    }

    fn closed(&mut self) -> Option<Close> {
        self.target.stream(self.socket).closed
    }

    fn counters(&self) -> &responder::Counters {
        self.target.worker.counters()
    }
}

#[test]
fn every_query_gets_its_response_by_get_and_by_post_and_both_ends_count_the_same() {
    for method in [Method::Get, Method::Post] {
        let mut doh = Doh::with(method, &Http2Options::default(), |_| {});
        doh.ask(0..90);
        doh.ask(90..100);
        assert_eq!(doh.answered(), (0..100).collect::<Vec<_>>());
        let counters = doh.counters();
        assert_eq!(counters.queries.get(Transport::Doh2), 100);
        assert_eq!(counters.responses.get(Transport::Doh2), 100);
        assert_eq!((counters.http_requests, counters.http_statuses), (100, 0));
        assert_eq!(counters.connections_accepted.get(Transport::Doh2), 1);
    }
}

#[test]
fn delayed_responses_find_their_streams() {
    let mut doh = Doh::behaving(|behaviour| {
        behaviour.delay = Delay::Uniform {
            min: ms(1),
            max: ms(50),
        };
    });
    doh.ask(0..80);
    assert_eq!(doh.answered(), Vec::<u32>::new());
    doh.run_until(at_ms(60));
    let mut tokens = doh.answered();
    assert_ne!(
        tokens,
        (0..80).collect::<Vec<_>>(),
        "not in the order of the queries"
    );
    tokens.sort_unstable();
    assert_eq!(tokens, (0..80).collect::<Vec<_>>());
}

#[test]
fn stalls_hold_everything_back() {
    let mut doh = Doh::behaving(|behaviour| {
        behaviour.stalls = vec![Stall {
            at: ms(0),
            length: ms(7),
            every: None,
        }];
    });
    doh.ask(0..5);
    doh.run_until(at_ms(6));
    assert_eq!(doh.ends, []);
    doh.run_until(at_ms(7));
    assert_eq!(doh.answered().len(), 5);
}

#[test]
fn responses_to_cancelled_streams_are_counted_as_orphaned() {
    let mut doh = Doh::behaving(|behaviour| behaviour.delay = Delay::Constant(ms(5)));
    doh.ask(0..10);
    for token in 0..4 {
        assert!(doh.http2.cancel(token, &mut doh.out));
    }
    doh.exchange();
    doh.run_until(at_ms(5));
    assert_eq!(doh.answered(), [4, 5, 6, 7, 8, 9]);
    let counters = doh.counters();
    assert_eq!((counters.streams_cancelled, counters.orphaned), (4, 4));
    assert_eq!(counters.responses.get(Transport::Doh2), 6);
}

#[test]
fn lost_responses_leave_their_streams_open() {
    let mut doh = Doh::behaving(|behaviour| behaviour.faults.loss = 1.0);
    doh.ask(0..10);
    doh.run_until(at_ms(1_000));
    assert_eq!((doh.ends.len(), doh.http2.open_streams()), (0, 10));
    assert_eq!(doh.counters().lost, 10);
    assert_eq!(doh.closed(), None);
}

#[test]
fn messages_are_spoilt_as_over_other_transports() {
    let faults: [fn(&mut Behaviour); 5] = [
        |behaviour| behaviour.faults.rcodes = vec![(5, 1.0)],
        |behaviour| behaviour.faults.truncated = 1.0,
        |behaviour| behaviour.faults.wrong_id = 1.0,
        |behaviour| behaviour.faults.oversized = 1.0,
        |behaviour| behaviour.duplicate_share = 1.0,
    ];
    for (index, fault) in faults.into_iter().enumerate() {
        let mut doh = Doh::behaving(fault);
        doh.ask(7..8);
        let (_, End::Message(message)) = doh.ends.remove(0) else {
            panic!("fault {index} is no message");
        };
        let parsed = Message::from_vec(&message).unwrap();
        match index {
            0 => assert_eq!(parsed.response_code, ResponseCode::Refused),
            1 => assert!(parsed.truncation),
            2 => assert_eq!(parsed.id, 7 ^ 0x55),
            3 => assert_eq!(message.len(), 65_535),
            // A stream has room for one response.
            _ => assert_eq!((doh.ends.len(), doh.counters().duplicated), (0, 0)),
        }
        assert_eq!(doh.counters().responses.get(Transport::Doh2), 1);
    }
}

#[test]
fn http_statuses_come_instead_of_messages_at_once_or_later() {
    for delay in [Delay::None, Delay::Constant(ms(3))] {
        let mut doh = Doh::behaving(|behaviour| {
            behaviour.delay = delay;
            behaviour.faults.http_statuses = vec![(503, 1.0)];
        });
        doh.ask(0..20);
        doh.run_until(at_ms(3));
        assert_eq!(doh.all_ended(), (20, End::Status(503)));
        let counters = doh.counters();
        assert_eq!(
            (counters.http_statuses, counters.responses.total()),
            (20, 0)
        );
        assert_eq!(counters.queries.get(Transport::Doh2), 20);
    }
}

#[test]
fn shares_of_statuses_and_resets_are_met() {
    let mut doh = Doh::behaving(|behaviour| {
        behaviour.faults.http_statuses = vec![(429, 0.2), (503, 0.1)];
        behaviour.faults.reset = 0.3;
    });
    for start in 0..100 {
        doh.ask(start * 20..start * 20 + 20);
    }
    let count = |wanted: &End| doh.ends.iter().filter(|(_, end)| end == wanted).count();
    let resets = End::Other("Reset(2)".to_owned());
    for (end, share) in [
        (End::Status(429), 0.2),
        (End::Status(503), 0.1),
        (resets, 0.3),
    ] {
        let expected = share * 2_000.0;
        assert!(
            (count(&end) as f64 - expected).abs() < 0.25 * expected,
            "{end:?}"
        );
    }
    assert_eq!(doh.ends.len(), 2_000);
    let counters = doh.counters();
    let statuses = count(&End::Status(429)) + count(&End::Status(503));
    assert_eq!(counters.http_statuses, statuses as u64);
    let sent = counters.http_statuses + counters.streams_reset + counters.responses.total();
    assert_eq!(sent, 2_000);
}

#[test]
fn streams_are_reset_at_once_or_later() {
    for delay in [Delay::None, Delay::Constant(ms(3))] {
        let mut doh = Doh::behaving(|behaviour| {
            behaviour.delay = delay;
            behaviour.faults.reset = 1.0;
        });
        doh.ask(0..20);
        doh.run_until(at_ms(3));
        assert_eq!(doh.all_ended(), (20, End::Other("Reset(2)".to_owned())));
        assert_eq!(doh.counters().streams_reset, 20);
    }
}

#[test]
fn faults_of_http_change_nothing_over_other_transports() {
    let mut target = Target::new(|config| {
        config.behaviour.faults.reset = 0.5;
        config.behaviour.faults.http_statuses = vec![(500, 0.5)];
    });
    let socket = target.connect(Transport::Tcp);
    target.send_bytes(
        socket,
        &crate::network::framed(&[query(1, "name.example A")]),
    );
    target.send_datagrams(1, &[query(2, "name.example A")]);
    assert_eq!(target.messages(socket).len(), 1);
    assert_eq!(target.network.sent.len(), 1);
}

#[test]
fn requests_without_a_query_get_a_status() {
    let mut doh = Doh::new(|config| config.doh_path = "/elsewhere".to_owned());
    doh.ask(0..1);
    assert_eq!(doh.all_ended(), (1, End::Status(404)));
    let mut doh = Doh::new(|_| {});
    for (token, message) in [(1, &[0; 11][..]), (2, &[0xff; 12][..])] {
        doh.http2.request(message, token, &mut doh.out).unwrap();
    }
    doh.exchange();
    assert_eq!(doh.all_ended(), (2, End::Status(400)));
    let counters = doh.counters();
    assert_eq!((counters.http_requests, counters.http_statuses), (2, 2));
    assert_eq!((counters.queries.total(), counters.ignored), (0, 2));
}

#[test]
fn goaway_after_so_many_queries_refuses_the_rest_and_waits_for_the_client() {
    for delay in [Delay::None, Delay::Constant(ms(5))] {
        let mut doh = Doh::behaving(|behaviour| {
            behaviour.delay = delay;
            behaviour.end_after = Some((10, ConnectionEnd::GoAway));
        });
        doh.ask(0..15);
        doh.run_until(at_ms(5));
        assert_eq!(doh.progress, Ok(Continuation::Drained));
        assert_eq!(doh.http2.goaway_code(), Some(ErrorCode::NO_ERROR));
        let not_processed = End::Other("NotProcessed".to_owned());
        let refused: Vec<u32> = { doh.ends.iter() }
            .filter(|(_, end)| *end == not_processed)
            .map(|(token, _)| *token)
            .collect();
        assert_eq!(refused, [10, 11, 12, 13, 14]);
        doh.ends.retain(|(_, end)| *end != not_processed);
        assert_eq!(doh.answered(), (0..10).collect::<Vec<_>>());
        let sent = doh
            .http2
            .request(&query(1, "name.example A"), 1, &mut doh.out);
        assert_eq!(sent, Err(Blocked::Ending));
        let counters = doh.counters();
        assert_eq!((counters.goaways, counters.unanswered), (1, 5));
        assert_eq!(counters.queries.get(Transport::Doh2), 10);
        assert_eq!(doh.closed(), None);
        let (target, socket) = (&mut doh.target, doh.socket);
        target.event(socket, Event::EndOfStream);
        assert_eq!(doh.closed(), Some(Close::Graceful));
    }
}

#[test]
fn connections_end_after_their_last_response_as_over_tcp() {
    for (end, close) in [
        (ConnectionEnd::Close, Close::Graceful),
        (ConnectionEnd::TlsAlert, Close::Graceful),
        (ConnectionEnd::Reset, Close::Reset),
    ] {
        let mut doh = Doh::behaving(|behaviour| {
            behaviour.delay = Delay::Constant(ms(5));
            behaviour.end_after = Some((10, end));
        });
        doh.ask(0..12);
        assert_eq!(doh.closed(), None);
        doh.run_until(at_ms(5));
        assert_eq!(doh.answered().len(), 10);
        assert_eq!(doh.closed(), Some(close), "{end:?}");
        assert_eq!(doh.counters().unanswered, 2);
    }
}

#[test]
fn connection_that_is_not_read_any_more_answers_what_it_has() {
    let mut doh = Doh::behaving(|behaviour| {
        behaviour.end_after = Some((10, ConnectionEnd::StopReading));
    });
    doh.ask(0..10);
    assert_eq!(doh.answered().len(), 10);
    assert!(doh.target.stream(doh.socket).paused);
    doh.ask(10..12);
    assert_eq!((doh.ends.len(), doh.closed()), (0, None));
}

#[test]
fn connection_whose_client_says_goodbye_is_closed_when_all_is_answered() {
    let mut doh = Doh::behaving(|behaviour| behaviour.delay = Delay::Constant(ms(5)));
    doh.ask(0..3);
    doh.http2.close(&mut doh.out);
    doh.exchange();
    assert_eq!(doh.closed(), None);
    doh.run_until(at_ms(5));
    assert_eq!(doh.answered(), [0, 1, 2]);
    doh.target.event(doh.socket, Event::EndOfStream);
    assert_eq!(doh.closed(), Some(Close::Graceful));
}

#[test]
fn idle_connections_are_closed() {
    let mut doh = Doh::behaving(|behaviour| behaviour.idle_timeout = Some(ms(50)));
    doh.ask(0..1);
    doh.run_until(at_ms(49));
    assert_eq!(doh.closed(), None);
    doh.run_until(at_ms(50));
    assert_eq!(
        (doh.closed(), doh.counters().connections_idle),
        (Some(Close::Graceful), 1)
    );
}

#[test]
fn small_windows_delay_responses_and_the_end_of_the_connection() {
    let options = Http2Options {
        stream_window_octets: 9,
        ..Http2Options::default()
    };
    let mut doh = Doh::with(Method::Post, &options, |config| {
        config.behaviour.end_after = Some((20, ConnectionEnd::Close));
    });
    doh.ask(0..20);
    assert_eq!(doh.answered().len(), 20);
    assert_eq!(doh.closed(), Some(Close::Graceful));
}

#[test]
fn responses_to_a_client_that_does_not_read_are_dropped_and_counted() {
    let mut doh = Doh::new(|config| {
        config.limits = Limits {
            unsent_octets_max: 300,
            ..Limits::default()
        };
    });
    doh.target.stream(doh.socket).room = Some(0);
    doh.ask(0..50);
    let counters = doh.counters();
    let (sent, dropped) = (counters.responses.total(), counters.unread_dropped);
    assert!(
        sent > 1 && dropped > 1 && sent + dropped == 50,
        "{sent} {dropped}"
    );
    assert!(doh.target.stream(doh.socket).paused);
}

#[test]
fn requests_beyond_the_limit_on_streams_are_refused() {
    let mut doh = Doh::new(|config| {
        config.doh_streams_max = 5;
        config.behaviour.delay = Delay::Constant(ms(1));
    });
    assert_eq!(doh.http2.streams_free(), 5, "the client knows the limit");
    doh.ask(0..5);
    let sent = doh
        .http2
        .request(&query(5, "name.example A"), 5, &mut doh.out);
    assert_eq!(sent, Err(Blocked::Streams));
}

#[test]
fn client_that_breaks_the_protocol_is_told_and_disconnected() {
    let mut target = Target::new(|config| config.listen_http = vec![client(0)]);
    for octets in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"PRI * HTTP/2.0\r\n\r\nXX"] {
        let socket = target.connect(Transport::Doh2);
        target.send_bytes(socket, octets);
        assert_eq!(target.stream(socket).closed, Some(Close::Graceful));
        let received = &target.stream(socket).received;
        let what = b"the client's preface is another";
        assert!(received.ends_with(what), "a GOAWAY with the reason");
    }
    assert_eq!(target.worker.counters().http_failed, 2);
    assert_eq!(target.worker.connections(), 0);
}

/// A worker with a certificate, and a TLS client that offers these ALPN protocols.
fn tls_client(alpn: &[&str]) -> (Target, SocketId, ClientTls) {
    let identity = self_signed(&SelfSigned::default()).unwrap();
    let options = ClientTlsOptions {
        roots: Roots::Pem(identity.certificate_pem.clone().into_bytes()),
        alpn: alpn.iter().map(|name| name.as_bytes().to_vec()).collect(),
        ..ClientTlsOptions::default()
    };
    let mut target = Target::new(|config| config.tls = Some(identity.server_config));
    let socket = target.connect(Transport::Doh2);
    let name = ServerName::try_from("localhost").unwrap();
    let tls = ClientTls::new(client_config(&options).unwrap(), name).unwrap();
    (target, socket, tls)
}

/// Moves octets of TLS; what came out of it is returned, or why it failed.
fn exchange_tls(
    target: &mut Target,
    socket: SocketId,
    tls: &mut ClientTls,
) -> Result<Vec<u8>, String> {
    let mut plaintext = Vec::new();
    for _ in 0..5 {
        let mut up = Vec::new();
        tls.poll_transmit(&mut up);
        if !up.is_empty() && target.stream(socket).closed.is_none() {
            target.send_bytes(socket, &up);
        }
        let down = std::mem::take(&mut target.stream(socket).received);
        let handled = tls.handle_bytes(&down, &mut plaintext);
        handled.map_err(|failure| format!("{failure:?}"))?;
    }
    Ok(plaintext)
}

#[test]
fn over_tls_both_agree_on_h2_and_queries_are_answered() {
    let (mut target, socket, mut tls) = tls_client(&["http/1.1", "h2"]);
    let request = DohRequest::new(Method::Get, "https://localhost/dns-query", &[]).unwrap();
    let mut out = Vec::new();
    let mut http2 = Http2Client::new(Arc::new(request), &Http2Options::default(), &mut out);
    for token in 0..20 {
        let message = query(token, "name.example A");
        http2.request(&message, u32::from(token), &mut out).unwrap();
    }
    tls.write(&out);
    let plaintext = exchange_tls(&mut target, socket, &mut tls).unwrap();
    let mut answered = Vec::new();
    let handled = http2.handle_bytes(&plaintext, &mut out, |token, end| {
        let ExchangeEnd::Message(message) = end else {
            panic!("{end:?}");
        };
        assert_eq!(u32::from(id(message)), token);
        answered.push(token);
    });
    assert_eq!(handled, Ok(Continuation::Continues));
    assert_eq!(answered, (0..20).collect::<Vec<_>>());
    let counters = target.worker.counters();
    assert_eq!((counters.handshakes_completed, counters.tls_failed), (1, 0));
}

#[test]
fn over_tls_clients_that_do_not_ask_for_h2_are_disconnected() {
    let (mut target, socket, mut tls) = tls_client(&[]);
    let _ = exchange_tls(&mut target, socket, &mut tls);
    assert_eq!(target.stream(socket).closed, Some(Close::Graceful));
    assert_eq!(target.worker.counters().tls_failed, 1);
    let (mut target, socket, mut tls) = tls_client(&["dot"]);
    let failure = exchange_tls(&mut target, socket, &mut tls).unwrap_err();
    assert!(
        failure.to_lowercase().contains("alpn") || failure.contains("Alert"),
        "{failure}"
    );
    assert_eq!(target.worker.counters().handshakes_failed, 1);
}
