//! `throng names`: sets of names to ask, and what a server needs to answer them.

use std::fmt;
use std::process::ExitCode;

use load::name_sets::{RecordSet, ServiceSet, write_shuffled};

use crate::args::{NameSet, NamesArguments, RecordForm, ServiceForm};
use crate::failure::{Failure, print};
use crate::records::read_input;

/// Writes the set to standard output.
pub(crate) fn execute(arguments: &NamesArguments) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    let (written, shuffle) = match &arguments.set {
        NameSet::Records {
            count,
            zone,
            ttl,
            format,
            shuffle,
        } => {
            let set = RecordSet::new(zone, *count, *ttl)?;
            let shuffle = shuffle.filter(|_| matches!(format, RecordForm::Names));
            (write_records(&set, *format, &mut text), shuffle)
        }
        NameSet::Services {
            existing,
            missing,
            external,
            ttl,
            format,
            shuffle,
        } => {
            let (existing, missing, external) = (*existing, *missing, *external);
            let set = ServiceSet {
                existing,
                missing,
                external,
                ttl_s: *ttl,
            };
            set.validate()?;
            let shuffle = shuffle.filter(|_| matches!(format, ServiceForm::Names));
            (write_services(&set, *format, &mut text), shuffle)
        }
        NameSet::Shuffle { file, seed } => {
            text = String::from_utf8(read_input(file)?)
                .map_err(|_| Failure::plain(format!("{} is not UTF-8 text", file.display())))?;
            (Ok(()), Some(*seed))
        }
    };
    written.map_err(Failure::in_operation)?;
    if let Some(seed) = shuffle {
        let mut shuffled = String::with_capacity(text.len());
        write_shuffled(&text, seed, &mut shuffled).map_err(Failure::in_operation)?;
        text = shuffled;
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn write_records(set: &RecordSet, format: RecordForm, text: &mut String) -> fmt::Result {
    match format {
        RecordForm::Names => set.write_names(text),
        RecordForm::Zone => set.write_zone(text),
        RecordForm::Updates => set.write_updates(text),
        RecordForm::Nsupdate => set.write_nsupdate(text),
        RecordForm::Ipa => set.write_ipa(text),
    }
}

fn write_services(set: &ServiceSet, format: ServiceForm, text: &mut String) -> fmt::Result {
    match format {
        ServiceForm::Names => set.write_names(text),
        ServiceForm::Zone => set.write_zone(text),
        ServiceForm::Manifests => set.write_manifests(text),
    }
}
