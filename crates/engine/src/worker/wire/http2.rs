//! Queries as HTTP/2 requests (RFC 8484).

use std::time::Duration;

use load::Plan;
use proto::http2::{Http2Client, Http2Options};

use super::Wire;
use super::question::render_without_id;
use crate::worker::offer::Mode;
use crate::worker::population::client::{Client, Link, Role};
use crate::worker::population::connection::{Channel, Connection};

impl Wire {
    /// Turns up to `room` waiting queries into requests in `plain_out`; their lengths go to
    /// `outgoing`.
    pub(crate) fn render_requests(
        &mut self,
        asked: (&Plan, &Mode),
        client: &mut Client,
        (room, is_watched): (usize, bool),
        unix_time: Duration,
    ) {
        self.outgoing.clear();
        self.positions.clear();
        self.plain_out.clear();
        let Client { pending, link, .. } = client;
        let Link::Connected(connection) = link else {
            return;
        };
        let Channel::Http2(session) = &mut connection.channel else {
            return;
        };
        for query in pending.waiting_queries(room) {
            let message = &mut self.message;
            render_without_id(asked, query.question, unix_time, message);
            let taken = session.request(message, query.number, &mut self.plain_out);
            if taken.is_err() {
                break;
            }
            self.outgoing.push_length(message.len());
            if is_watched {
                self.positions.push(query.position);
            }
        }
    }

    /// Cancels a request of an HTTP/2 connection; true if `plain_out` has a frame to send for it.
    pub(crate) fn cancel_request(&mut self, connection: &mut Connection, token: u32) -> bool {
        let Channel::Http2(session) = &mut connection.channel else {
            return false;
        };
        self.plain_out.clear();
        session.cancel(token, &mut self.plain_out)
    }

    /// Writes the closing frames of an HTTP/2 connection to `plain_out`.
    pub(crate) fn close_http2(&mut self, connection: &mut Connection) -> bool {
        let Channel::Http2(session) = &mut connection.channel else {
            return false;
        };
        self.plain_out.clear();
        session.close(&mut self.plain_out);
        true
    }

    /// Writes the HTTP/2 preface to `plain_out`; false if it was written before, or the client has
    /// no connection. Within TLS it travels with the first request.
    pub(crate) fn begin_http2(&mut self, plan: &Plan, client: &mut Client) -> bool {
        let is_primary = client.role == Role::Primary;
        let Some(request) = plan.doh.as_ref().filter(|_| is_primary) else {
            return false;
        };
        let Some(connection) = client.connection() else {
            return false;
        };
        if matches!(connection.channel, Channel::Http2(_)) {
            return false;
        }
        self.plain_out.clear();
        let options = Http2Options {
            takes_dns_media_type: plan.matches_by_id_alone,
            ..Http2Options::default()
        };
        let session = Http2Client::new(request.clone(), &options, &mut self.plain_out);
        connection.channel = Channel::Http2(Box::new(session));
        match &mut connection.tls {
            Some(tls) => {
                tls.write(&self.plain_out);
                false
            }
            None => true,
        }
    }
}
