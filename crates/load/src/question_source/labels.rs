//! Generated labels: each is a function of its number, so none has to be remembered.

use super::permutation::Permutation;
use crate::plan_error::PlanError;
use crate::random::mix;

/// Characters of random labels, five bits each (RFC 4648, section 6, in lower case).
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Characters that tell random labels apart: 50 bits, more than the numbers of labels have.
const UNIQUE_OCTETS: u8 = 10;
/// Octets of labels that are counted up, unless told otherwise.
const COUNTED_OCTETS: u8 = 9;
/// Most digits of a label: numbers of labels have 48 bits.
const COUNTED_OCTETS_MAX: u8 = 15;
/// Lengths of random labels that may repeat, unless told otherwise.
const TORTURE_OCTETS: (u8, u8) = (4, 16);
/// RFC 1035, section 2.3.4.
const OCTETS_MAX: u8 = proto::name::LABEL_OCTETS_MAX as u8;

/// How labels are made of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelForm {
    /// Letters and digits that look random. Labels of ten octets or more never repeat.
    Random,
    /// Decimal numbers with leading zeros, counted up; after the last one from 0 again.
    Counted,
}

/// The form of labels put before a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    form: LabelForm,
    octets_min: u8,
    octets_max: u8,
    seed: u64,
    permutation: Permutation,
}

impl Labels {
    /// Random labels of which none comes twice, of 10 octets unless told otherwise.
    ///
    /// # Errors
    /// They are too short to be told apart, or too long for a label.
    pub fn unique(octets: Option<(u8, u8)>, seed: u64) -> Result<Self, PlanError> {
        let octets = octets.unwrap_or((UNIQUE_OCTETS, UNIQUE_OCTETS));
        if octets.0 < UNIQUE_OCTETS {
            let what = format!("random labels of {} bytes would repeat", octets.0);
            let hint = format!("give {UNIQUE_OCTETS} or more");
            return Err(PlanError::new("label-octets", what, hint));
        }
        Self::new(LabelForm::Random, octets, seed)
    }

    /// Random labels of random lengths, 4 to 16 octets unless told otherwise. Those shorter than
    /// ten octets may repeat.
    ///
    /// # Errors
    /// They have no octet, or are too long for a label.
    pub fn random(octets: Option<(u8, u8)>, seed: u64) -> Result<Self, PlanError> {
        Self::new(LabelForm::Random, octets.unwrap_or(TORTURE_OCTETS), seed)
    }

    /// Numbers counted up from 0, of 9 digits unless told otherwise.
    ///
    /// # Errors
    /// The lengths differ, or are not those of a number below 2^48.
    pub fn counted(octets: Option<(u8, u8)>) -> Result<Self, PlanError> {
        let octets = octets.unwrap_or((COUNTED_OCTETS, COUNTED_OCTETS));
        if octets.0 != octets.1 || octets.1 > COUNTED_OCTETS_MAX {
            let what = format!(
                "labels of {} to {} bytes cannot be counted",
                octets.0, octets.1
            );
            let hint = format!("give one number of digits, at most {COUNTED_OCTETS_MAX}");
            return Err(PlanError::new("label-octets", what, hint));
        }
        Self::new(LabelForm::Counted, octets, 0)
    }

    fn new(form: LabelForm, (min, max): (u8, u8), seed: u64) -> Result<Self, PlanError> {
        if min == 0 || max > OCTETS_MAX || min > max {
            let what = format!("a label cannot have {min} to {max} bytes");
            let hint = format!("give 1 to {OCTETS_MAX}, such as 12 or 4..16");
            return Err(PlanError::new("label-octets", what, hint));
        }
        Ok(Labels {
            form,
            octets_min: min,
            octets_max: max,
            seed,
            permutation: Permutation::new(1 << (5 * UNIQUE_OCTETS), seed),
        })
    }

    /// Their form.
    pub fn form(&self) -> LabelForm {
        self.form
    }

    /// Octets of the shortest and the longest, length octets not counted.
    pub fn octets(&self) -> (u8, u8) {
        (self.octets_min, self.octets_max)
    }

    /// The seed that decides on them; 0 for labels that are counted.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// True if no two of them are alike within a run.
    pub fn are_unique(&self) -> bool {
        self.form == LabelForm::Random && self.octets_min >= UNIQUE_OCTETS
    }

    /// Octets that the longest adds to a name, its length octet included.
    pub fn wire_octets_max(&self) -> u16 {
        u16::from(self.octets_max) + 1
    }

    /// Appends label number `number` behind its length octet; says how many octets that were.
    pub(crate) fn write(&self, number: u64, wire: &mut Vec<u8>) -> usize {
        let mut octets = [0; 1 + OCTETS_MAX as usize];
        let length = match self.form {
            LabelForm::Random => self.write_random(number, &mut octets[1..]),
            LabelForm::Counted => self.write_counted(number, &mut octets[1..]),
        };
        octets[0] = length as u8;
        wire.extend_from_slice(&octets[..=length]);
        1 + length
    }

    fn write_random(&self, number: u64, label: &mut [u8]) -> usize {
        let unique = self.permutation.at(number);
        let mut more = mix(unique ^ self.seed);
        let lengths = u64::from(self.octets_max - self.octets_min) + 1;
        // The upper 32 bits decide on the length.
        let length = u64::from(self.octets_min) + (((more >> 32) * lengths) >> 32);
        let length = length as usize;
        let mut bits = unique;
        for (place, octet) in label[..length].iter_mut().enumerate() {
            if place >= usize::from(UNIQUE_OCTETS) && (place - 10).is_multiple_of(12) {
                more = mix(more);
                bits = more;
            }
            *octet = LETTERS[bits as usize & 31];
            bits >>= 5;
        }
        length
    }

    fn write_counted(&self, number: u64, label: &mut [u8]) -> usize {
        let length = usize::from(self.octets_max);
        let mut rest = number;
        for octet in label[..length].iter_mut().rev() {
            *octet = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        length
    }
}

/// Reads lengths of labels: `12`, or `4..16` for any of 4 to 16.
///
/// # Errors
/// The text is neither, or the first is more than the second.
pub fn parse_label_octets(text: &str) -> Result<(u8, u8), PlanError> {
    let (min, max) = text.split_once("..").unwrap_or((text, text));
    match (min.parse(), max.parse()) {
        (Ok(min), Ok(max)) if min <= max => Ok((min, max)),
        _ => {
            let what = format!("`{text}` is not a length of labels");
            Err(PlanError::new("label-octets", what, "write 12, or 4..16"))
        }
    }
}
