//! One scrape: a request, a response, and a time limit for both. Without I/O.

use std::time::{Duration, Instant};

use crate::format::Format;
use crate::request::{REQUEST_BYTES_MAX, Request, Status, parse_request};

/// A connection of a scraper.
#[derive(Debug)]
pub(crate) struct Connection {
    /// It is closed then, whatever it has done.
    pub(crate) until: Instant,
    /// There were too many others when it came.
    is_refused: bool,
    received: Vec<u8>,
    /// What is still to be sent; none before the request is complete.
    response: Option<Vec<u8>>,
    sent: usize,
}

impl Connection {
    pub(crate) fn new(now: Instant, patience: Duration, is_refused: bool) -> Connection {
        Connection {
            until: now + patience,
            is_refused,
            received: Vec::new(),
            response: None,
            sent: 0,
        }
    }

    /// Bytes that may be received at once; 0 once the request is complete.
    pub(crate) fn room(&self) -> usize {
        match self.response {
            Some(_) => 0,
            None => REQUEST_BYTES_MAX - self.received.len(),
        }
    }

    /// Takes what was received; true if metrics were encoded for it.
    pub(crate) fn receive(&mut self, bytes: &[u8], encode: impl FnOnce(Format) -> Vec<u8>) -> bool {
        self.received.extend_from_slice(bytes);
        let Some(request) = parse_request(&self.received) else {
            return false;
        };
        let request = match self.is_refused {
            true => Request::refused(Status::Unavailable),
            false => request,
        };
        let mut is_scrape = false;
        self.response = Some(request.respond(|format| {
            is_scrape = true;
            encode(format)
        }));
        is_scrape
    }

    /// What is to be sent next; empty if there is nothing, or nothing yet.
    pub(crate) fn outgoing(&self) -> &[u8] {
        let response = self.response.as_deref().unwrap_or_default();
        &response[self.sent..]
    }

    /// As many bytes of it were sent.
    pub(crate) fn advance(&mut self, sent: usize) {
        self.sent += sent;
    }

    /// Its response was sent whole.
    pub(crate) fn is_done(&self) -> bool {
        self.response.is_some() && self.outgoing().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(is_refused: bool) -> Connection {
        Connection::new(Instant::now(), Duration::from_secs(1), is_refused)
    }

    #[test]
    fn a_request_in_pieces_gets_one_response() {
        let mut connection = connection(false);
        let encode = |_| b"metrics".to_vec();
        for byte in b"GET /metrics HTTP/1.1\r\n\r" {
            assert!(!connection.receive(&[*byte], encode));
            assert!(connection.outgoing().is_empty() && !connection.is_done());
        }
        assert!(connection.receive(b"\n", encode));
        assert_eq!(connection.room(), 0);
        let all = connection.outgoing().len();
        connection.advance(all - 7);
        assert_eq!(
            (connection.outgoing(), connection.is_done()),
            (&b"metrics"[..], false)
        );
        connection.advance(7);
        assert!(connection.is_done());
    }

    #[test]
    fn a_connection_above_the_limit_gets_503_and_no_metrics() {
        let mut connection = connection(true);
        let is_scrape = connection.receive(b"GET /metrics HTTP/1.1\r\n\r\n", |_| panic!());
        assert!(!is_scrape);
        assert!(connection.outgoing().starts_with(b"HTTP/1.1 503 "));
    }

    #[test]
    fn an_endless_request_is_refused_at_its_maximum() {
        let mut connection = connection(false);
        let room = connection.room();
        connection.receive(&vec![b'a'; room], |_| panic!());
        assert!(connection.outgoing().starts_with(b"HTTP/1.1 431 "));
        assert_eq!(connection.room(), 0);
    }
}
