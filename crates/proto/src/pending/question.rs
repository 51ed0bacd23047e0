//! What a query asks, in eleven octets.

/// What one query asks: a template of the run's question set, and what was put into its copy.
///
/// Whoever makes questions decides what the numbers of label and QTYPE stand for. They are kept
/// here instead of the octets, so that the question can be made again when its response comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Index of the template in the run's question set.
    pub template: u32,
    pub(super) label_low: u32,
    pub(super) label_high: u16,
    /// Number of the QTYPE that takes the place of the template's, from 1; 0 for the template's.
    pub qtype: u8,
}

/// The highest number of a generated label: a million a second last for nine years.
pub const LABEL_MAX: u64 = (1 << 48) - 1;

impl Question {
    /// The template as it is.
    #[inline]
    pub fn plain(template: u32) -> Self {
        Question {
            template,
            ..Question::default()
        }
    }

    /// The same with another QTYPE.
    #[inline]
    #[must_use]
    pub fn with_qtype(self, qtype: u8) -> Self {
        Question { qtype, ..self }
    }

    /// The same with another label: numbers go from 1 to [`LABEL_MAX`], 0 is no label.
    #[inline]
    #[must_use]
    pub fn with_label(self, label: u64) -> Self {
        debug_assert!(label <= LABEL_MAX, "labels have numbers of 48 bits");
        Question {
            label_low: label as u32,
            label_high: (label >> 32) as u16,
            ..self
        }
    }

    /// Number of the generated label, from 1; 0 if there is none.
    #[inline]
    pub fn label(self) -> u64 {
        u64::from(self.label_high) << 32 | u64::from(self.label_low)
    }

    /// True if the template is sent as it is.
    #[inline]
    pub fn is_plain(self) -> bool {
        self.label() == 0 && self.qtype == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_keeps_its_number_and_makes_the_question_another() {
        let plain = Question::plain(7);
        assert!(plain.is_plain());
        for label in [1, 0xffff_ffff, 0x1_0000_0000, LABEL_MAX] {
            let labelled = plain.with_label(label);
            assert_eq!((labelled.label(), labelled.template), (label, 7));
            assert!(!labelled.is_plain());
        }
        assert!(!plain.with_qtype(1).is_plain());
    }
}
