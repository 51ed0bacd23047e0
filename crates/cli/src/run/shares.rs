//! Who offers what, told before a run of several groups or targets starts.

use lab::run::RunRequest;
use report::table::{Align, Table};

/// Says who offers what before a run of several groups or targets starts.
pub(crate) fn show_shares(requests: &[RunRequest], is_quiet: bool) {
    if is_quiet || requests.len() < 2 {
        return;
    }
    let (left, right) = (Align::Left, Align::Right);
    let mut table = Table::new([left, left, left, right, left]);
    table.row(["group", "target", "transport", "clients", "offers"].map(str::to_owned));
    for share in lab::run::shares::shares(requests) {
        let target = share.target;
        table.row([
            share.group,
            target.unwrap_or_else(|| "the built-in responder".to_owned()),
            share.transport,
            measure::notation::count(share.clients.into()),
            share.load,
        ]);
    }
    let mut text = String::new();
    table.write_to(&mut text);
    text.lines().for_each(|line| tell!("{line}"));
}
