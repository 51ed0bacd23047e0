//! The message of a query, of the run's questions or of a script.

use std::time::Duration;

use load::Plan;
use load::question_source::Question;
use proto::framing;
use proto::response::question_matches;

use crate::worker::offer::Mode;

/// Appends the message of a query, of the run's questions or of a script.
#[inline(always)]
pub(crate) fn write_query(
    (plan, mode): (&Plan, &Mode),
    asked: Question,
    id: u16,
    message: &mut Vec<u8>,
) {
    match mode {
        Mode::Scripted(scripted) => scripted.with_template(asked.template, |template| {
            let start = message.len();
            message.extend_from_slice(template.message);
            message[start..start + 2].copy_from_slice(&id.to_be_bytes());
        }),
        _ => plan.write_query(asked, id, message),
    }
}

/// As [`write_query`], with the length before it that streams need (RFC 1035, section 4.2.2).
#[inline(always)]
pub(crate) fn write_framed_query(
    (plan, mode): (&Plan, &Mode),
    asked: Question,
    id: u16,
    stream: &mut Vec<u8>,
) {
    match mode {
        Mode::Scripted(scripted) => scripted.with_template(asked.template, |template| {
            let message = stream.len() + framing::PREFIX_OCTETS;
            framing::write_message(template.message, stream);
            stream[message..message + 2].copy_from_slice(&id.to_be_bytes());
        }),
        _ => plan.write_framed_query(asked, id, stream),
    }
}

/// Copies a question into `message`, with message ID 0: over HTTP so that responses can be cached
/// (RFC 8484, section 4.1), over DoQ because it must be (RFC 9250, section 4.2.1).
pub(crate) fn render_without_id(
    asked: (&Plan, &Mode),
    question: Question,
    unix_time: Duration,
    message: &mut Vec<u8>,
) {
    message.clear();
    write_query(asked, question, 0, message);
    if let Some(key) = &asked.0.tsig {
        key.sign(message, 0, unix_time);
    }
}

/// True if `response` carries the question of a query; the content of `scratch` is lost.
#[inline]
pub(crate) fn is_answered_by(
    (plan, mode): (&Plan, &Mode),
    asked: Question,
    response: &[u8],
    scratch: &mut Vec<u8>,
) -> bool {
    match mode {
        Mode::Scripted(scripted) => scripted.with_template(asked.template, |template| {
            question_matches(template.message, template.question_octets, response)
        }),
        _ => plan.is_answered_by(asked, response, scratch),
    }
}
