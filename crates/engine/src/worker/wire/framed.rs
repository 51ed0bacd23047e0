//! Queries one after the other on a stream, each behind its length (RFC 7766, RFC 7858).

use std::time::Duration;

use driver::Outgoing;
use load::{Plan, QuestionSet};
use proto::framing;
use proto::pending::WaitingQueries;

use super::Wire;
use super::question::write_framed_query;
use crate::worker::offer::Mode;

impl Wire {
    /// Frames waiting queries into `plain_out`; their lengths go to `outgoing`.
    #[inline]
    pub(crate) fn render_frames(
        &mut self,
        asked: (&Plan, &Mode),
        waiting: WaitingQueries<'_>,
        is_watched: bool,
        unix_time: Duration,
    ) {
        self.outgoing.clear();
        self.positions.clear();
        self.plain_out.clear();
        let (plan, _) = asked;
        if !is_watched && plan.tsig.is_none() {
            let rendered = (&mut self.plain_out, &mut self.outgoing);
            return render_plain_frames(plan, &plan.questions, waiting, rendered);
        }
        for query in waiting {
            let stream = &mut self.plain_out;
            let start = stream.len();
            let message = start + framing::PREFIX_OCTETS;
            write_framed_query(asked, query.question, query.id, stream);
            if let Some(key) = &plan.tsig {
                key.sign(stream, message, unix_time);
                let length = (stream.len() - message) as u16;
                stream[start..message].copy_from_slice(&length.to_be_bytes());
            }
            self.outgoing.push_length(stream.len() - message);
            self.positions.push(query.position);
        }
    }
}

/// The same for a stream, each behind its length; `outgoing` has the lengths.
#[inline(never)]
fn render_plain_frames(
    plan: &Plan,
    questions: &QuestionSet,
    waiting: WaitingQueries<'_>,
    (stream, outgoing): (&mut Vec<u8>, &mut Outgoing),
) {
    for query in waiting {
        let start = stream.len() + framing::PREFIX_OCTETS;
        let asked = query.question;
        match asked.is_plain() {
            true => questions.append_framed(asked.template as usize, query.id, stream),
            false => plan.write_framed_query(asked, query.id, stream),
        }
        outgoing.push_length(stream.len() - start);
    }
}
