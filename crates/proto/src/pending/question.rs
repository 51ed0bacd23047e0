//! The question of a query, in eleven bytes.

/// The question of one query: a template of the run's question set, and the changes in its copy.
///
/// The creator of questions defines the meaning of the numbers of label and QTYPE. They are stored
/// here instead of the octets, so that the question can be rendered again when its response comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Index of the template in the run's question set.
    pub template: u32,
    /// The label's number, and above it the QTYPE's: 7 octets.
    pub(super) variation: u64,
}

/// The highest number of a generated label: a million a second last for nine years.
pub const LABEL_MAX: u64 = (1 << 48) - 1;

impl Question {
    /// The template unchanged.
    #[inline]
    pub fn plain(template: u32) -> Self {
        Question {
            template,
            variation: 0,
        }
    }

    /// The same with another QTYPE.
    #[inline]
    #[must_use]
    pub fn with_qtype(self, qtype: u8) -> Self {
        let variation = self.label() | u64::from(qtype) << 48;
        Question { variation, ..self }
    }

    /// The same with another label: numbers go from 1 to [`LABEL_MAX`], 0 is not a label.
    #[inline]
    #[must_use]
    pub fn with_label(self, label: u64) -> Self {
        debug_assert!(label <= LABEL_MAX, "labels have numbers of 48 bits");
        let variation = self.variation & !LABEL_MAX | label;
        Question { variation, ..self }
    }

    /// Number of the generated label, from 1; 0 if there is none.
    #[inline]
    pub fn label(self) -> u64 {
        self.variation & LABEL_MAX
    }

    /// Number of the QTYPE that replaces the template's, from 1; 0 for the template's.
    #[inline]
    pub fn qtype(self) -> u8 {
        (self.variation >> 48) as u8
    }

    /// True if the template is sent unchanged.
    #[inline]
    pub fn is_plain(self) -> bool {
        self.variation == 0
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
            let typed = labelled.with_qtype(9);
            assert_eq!((typed.label(), typed.qtype()), (label, 9));
            assert_eq!(typed.with_label(3), plain.with_label(3).with_qtype(9));
        }
        assert!(!plain.with_qtype(1).is_plain());
    }
}
