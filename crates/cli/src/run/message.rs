//! How the messages of a run are built.

use std::num::NonZeroU16;

use proto::query::{Edns, OPTION_KEEPALIVE, QueryOptions};
use settings::{Run, Tsig};

use super::questions;
use crate::failure::Failure;
use crate::inputs;

/// How queries are built unless a line of the names file says otherwise.
pub(crate) fn query_options(run: &Run) -> Result<QueryOptions, Failure> {
    Ok(QueryOptions {
        recursion_desired: !run.message.no_recursion,
        edns: edns(run),
        signature_octets: signature_octets(run)?,
        label_octets: questions::label_octets(run)?,
        ..QueryOptions::default()
    })
}

/// Octets of the TSIG record of each query.
fn signature_octets(run: &Run) -> Result<u16, Failure> {
    let key = tsig(run)?;
    let octets = key.as_ref().map_or(0, proto::tsig::Key::record_octets);
    // Two names and a digest are far below that; the plan refuses what does not fit.
    Ok(u16::try_from(octets).unwrap_or(u16::MAX))
}

pub(super) fn edns(run: &Run) -> Option<Edns> {
    let asked = run.message.edns.as_ref()?;
    let mut edns = Edns {
        dnssec_ok: asked.dnssec_ok,
        ..Edns::default()
    };
    if let Some(octets) = asked.udp_payload_octets {
        edns.udp_payload_octets = octets;
    }
    let options = asked.options.iter();
    edns.options = options.map(|it| (it.code, it.data.clone())).collect();
    if asked.keepalive {
        edns.options.push((OPTION_KEEPALIVE, Vec::new()));
    }
    edns.padding_block_octets = asked.padding_octets.and_then(NonZeroU16::new);
    Some(edns)
}

pub(super) fn tsig(run: &Run) -> Result<Option<proto::tsig::Key>, Failure> {
    let path = match &run.message.tsig {
        None | Some(Tsig::NotRecorded) => return Ok(None),
        Some(Tsig::Key(text)) => {
            let key = text.parse();
            return key
                .map(Some)
                .map_err(|reason: String| Failure::plain(format!("--tsig: {reason}")));
        }
        Some(Tsig::File(file)) => file.as_path(),
    };
    let text = inputs::text(path).map_err(|error| {
        Failure::usage(
            format!("cannot read --tsig-file {}: {error}", path.display()),
            "make one with `tsig-keygen NAME > FILE`",
        )
    })?;
    let key = proto::tsig::Key::from_key_file(&text)
        .map_err(|reason| Failure::plain(format!("{}: {reason}", path.display())))?;
    Ok(Some(key))
}
