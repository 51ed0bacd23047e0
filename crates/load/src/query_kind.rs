//! Type, class and options of a query, in the notation of a names file.

use proto::query::QueryOptions;

use crate::line_options;
use crate::names_error::Fault;
use crate::names_file::type_and_class;
use crate::words::{self, Quotes, Word};

/// What follows the name on a line of a names file, read once for many names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryKind {
    /// QTYPE.
    pub qtype: u16,
    /// QCLASS.
    pub qclass: u16,
    /// Flags and EDNS.
    pub options: QueryOptions,
}

impl QueryKind {
    /// Reads `AAAA`, `CH TXT`, `A +do +ecs=192.0.2.0/24`; `defaults` hold unless options change
    /// them.
    ///
    /// # Errors
    /// What is wrong, and the cure, for people.
    pub fn parse(text: &str, defaults: &QueryOptions) -> Result<QueryKind, String> {
        read(text, defaults).map_err(|fault| format!("{}; {}", fault.what, fault.hint))
    }
}

fn read(text: &str, defaults: &QueryOptions) -> Result<QueryKind, Fault> {
    let mut found = Vec::new();
    words::split(text, Quotes::Plain, &mut found)?;
    let is_option = |word: &Word<'_>| word.text.starts_with(['+', '-']);
    let options_at = found.iter().position(is_option).unwrap_or(found.len());
    let (kind, options) = found.split_at(options_at);
    let before = Word {
        text: "",
        column: 1,
    };
    let (qtype, qclass) = type_and_class(&before, kind)?;
    let mut changed = defaults.clone();
    line_options::apply(options, &mut changed)?;
    Ok(QueryKind {
        qtype,
        qclass,
        options: changed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_classes_and_options_are_those_of_a_names_file() {
        let defaults = QueryOptions::default();
        let read = |text: &str| QueryKind::parse(text, &defaults).unwrap();
        assert_eq!((read("aaaa").qtype, read("AAAA").qclass), (28, 1));
        assert_eq!(
            (read("CH TXT").qtype, read("TYPE65280").qtype),
            (16, 65_280)
        );
        assert_eq!(read("A").options, defaults);
        let changed = read("A +do -rd").options;
        assert!(changed.edns.unwrap().dnssec_ok && !changed.recursion_desired);
    }

    #[test]
    fn what_is_wrong_is_said_with_the_cure() {
        let defaults = QueryOptions::default();
        let refused = |text: &str| QueryKind::parse(text, &defaults).unwrap_err();
        assert!(refused("AAAAA").starts_with("unknown type `AAAAA`; types are mnemonics"));
        assert!(refused("A +dnssec").contains("unknown option `+dnssec`"));
        assert!(refused("").starts_with("no type after the name"));
    }
}
