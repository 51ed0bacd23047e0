//! Cutting a stream at the boundaries of TLS records (RFC 8446, section 5.1).
//!
//! rustls reads into a buffer of 4,096 octets. A record that a read has cut off makes it grow,
//! and shrink again at the next read: two reallocations, and twice the memory in a client that
//! falls idle in between. Reads that end with a record keep the buffer as it is.

/// The most octets that rustls' buffer takes without growing.
const READ_OCTETS_MAX: usize = 4_096;

/// Octets of a record header: type, version, length.
const HEADER_OCTETS: usize = 5;

/// Where in a record the stream stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecordBoundaries {
    /// Octets of the header seen so far; 0 at a boundary.
    header_octets: usize,
    /// The length in the header, as far as seen; then the octets still to come.
    body_octets: u16,
}

impl RecordBoundaries {
    /// Takes the next octets to hand to rustls from `rest`: whole records if any fit.
    ///
    /// Takes at least one octet from what is not empty. Garbage is cut anywhere.
    pub(super) fn take_piece<'a>(&mut self, rest: &mut &'a [u8]) -> &'a [u8] {
        let window = &rest[..rest.len().min(READ_OCTETS_MAX)];
        let (mut at, mut boundary) = (0, 0);
        while at < window.len() {
            at += self.advance(&window[at..]);
            if self.header_octets == 0 {
                boundary = at;
            }
        }
        if boundary == 0 {
            boundary = at;
        } else {
            *self = RecordBoundaries::default();
        }
        let (piece, after) = rest.split_at(boundary);
        *rest = after;
        piece
    }

    /// Takes the rest of the record that the stream stands in, or as much of it as fits.
    ///
    /// Takes at least one octet from what is not empty, and none of the next record.
    pub(super) fn take_record<'a>(&mut self, rest: &mut &'a [u8]) -> &'a [u8] {
        let window = &rest[..rest.len().min(READ_OCTETS_MAX)];
        let mut at = 0;
        while at < window.len() {
            at += self.advance(&window[at..]);
            if self.header_octets == 0 {
                break;
            }
        }
        let (piece, after) = rest.split_at(at);
        *rest = after;
        piece
    }

    /// True where no record has been cut off.
    pub(super) fn is_between_records(&self) -> bool {
        self.header_octets == 0
    }

    /// Moves over one octet of a header or the body of a record; returns the octets moved over.
    fn advance(&mut self, octets: &[u8]) -> usize {
        let moved = if self.header_octets < HEADER_OCTETS {
            if self.header_octets >= 3 {
                self.body_octets = self.body_octets << 8 | u16::from(octets[0]);
            }
            self.header_octets += 1;
            1
        } else {
            let moved = octets.len().min(usize::from(self.body_octets));
            self.body_octets -= moved as u16;
            moved
        };
        if self.header_octets == HEADER_OCTETS && self.body_octets == 0 {
            *self = RecordBoundaries::default();
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(body_octets: usize) -> Vec<u8> {
        let mut record = vec![23, 3, 3];
        record.extend_from_slice(&(body_octets as u16).to_be_bytes());
        record.resize(HEADER_OCTETS + body_octets, 7);
        record
    }

    fn piece_octets(boundaries: &mut RecordBoundaries, mut rest: &[u8]) -> Vec<usize> {
        let mut octets = Vec::new();
        while !rest.is_empty() {
            octets.push(boundaries.take_piece(&mut rest).len());
        }
        octets
    }

    #[test]
    fn pieces_end_with_a_record_where_one_ends() {
        let stream = [
            record(1_000),
            record(0),
            record(3_000),
            record(10_000),
            record(5),
        ]
        .concat();
        let mut boundaries = RecordBoundaries::default();
        // 1,005 + 5 + 3,005 fit; 10,005 octets take three reads; 10 are left.
        assert_eq!(
            piece_octets(&mut boundaries, &stream),
            [4_015, 4_096, 4_096, 1_823]
        );
        assert_eq!(boundaries.header_octets, 0);
    }

    #[test]
    fn single_records_are_taken_however_many_came() {
        let stream = [record(100), record(0), record(5_000), record(1)].concat();
        let (mut rest, mut boundaries) = (&stream[..], RecordBoundaries::default());
        let mut octets = Vec::new();
        while !rest.is_empty() {
            octets.push(boundaries.take_record(&mut rest).len());
        }
        assert_eq!(octets, [105, 5, 4_096, 909, 6]);
        assert_eq!(boundaries.header_octets, 0);
    }

    #[test]
    fn cut_off_record_waits_alone() {
        let stream = [record(100), record(100)].concat();
        let mut boundaries = RecordBoundaries::default();
        assert_eq!(piece_octets(&mut boundaries, &stream[..150]), [105, 45]);
        assert_eq!(piece_octets(&mut boundaries, &stream[150..]), [60]);
    }

    proptest! {
        #[test]
        fn every_octet_is_taken_once_and_in_order(
            mut stream in prop::collection::vec(0_u8..8, 0..20_000),
            ones in prop::collection::vec(any::<prop::sample::Index>(), 0..100),
        ) {
            for index in ones {
                if !stream.is_empty() {
                    let at = index.index(stream.len());
                    stream[at] = 255;
                }
            }
            let (mut rest, mut taken) = (&stream[..], Vec::new());
            let mut boundaries = RecordBoundaries::default();
            while !rest.is_empty() {
                let piece = boundaries.take_piece(&mut rest);
                prop_assert!(!piece.is_empty() && piece.len() <= READ_OCTETS_MAX);
                taken.extend_from_slice(piece);
            }
            prop_assert_eq!(taken, stream);
        }
    }
}
