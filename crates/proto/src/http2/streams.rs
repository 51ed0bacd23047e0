//! Open streams by their identifiers.

/// Places of a table that has just got its first stream.
const PLACES_MIN: usize = 4;

/// A table with open addressing; a stream's slot follows from its identifier.
///
/// Identifiers of one side are consecutive, so most streams are in the first slot probed; if all
/// are, nothing moves when one is removed. Grows to twice the streams that were ever open at once;
/// never shrinks.
#[derive(Debug)]
pub(super) struct Streams<S> {
    /// Identifier 0 is a free slot. Length 0 or a power of two, at most half used.
    places: Vec<(u32, S)>,
    open: usize,
    /// Streams that are not where they belong, because another was there.
    displaced: usize,
}

impl<S> Default for Streams<S> {
    fn default() -> Self {
        Streams {
            places: Vec::new(),
            open: 0,
            displaced: 0,
        }
    }
}

impl<S: Default> Streams<S> {
    /// How many streams are open.
    pub(super) fn len(&self) -> usize {
        self.open
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut S> {
        let place = self.find(id)?;
        Some(&mut self.places[place].1)
    }

    pub(super) fn contains(&self, id: u32) -> bool {
        self.find(id).is_some()
    }

    /// Adds a stream; `id` is not 0 and not open.
    #[inline]
    pub(super) fn insert(&mut self, id: u32, stream: S) {
        if self.open * 2 >= self.places.len() {
            self.grow();
        }
        self.place(id, stream);
        self.open += 1;
    }

    /// Removes a stream. Those after it move up, so that none is after a free slot of its probe
    /// sequence.
    pub(super) fn remove(&mut self, id: u32) -> Option<S> {
        self.remove_if(id, |_| true)
    }

    /// As [`Streams::remove`], if `wanted` returns true.
    #[inline]
    pub(super) fn remove_if(&mut self, id: u32, wanted: impl FnOnce(&S) -> bool) -> Option<S> {
        let hole = self.find(id)?;
        if !wanted(&self.places[hole].1) {
            return None;
        }
        let (_, removed) = std::mem::take(&mut self.places[hole]);
        self.open -= 1;
        if self.displaced > 0 {
            let was_displaced = hole != home(id, self.places.len() - 1);
            self.displaced -= usize::from(was_displaced);
            self.close_hole(hole);
        }
        Some(removed)
    }

    fn close_hole(&mut self, mut hole: usize) {
        let mask = self.places.len() - 1;
        let mut next = hole;
        loop {
            next = (next + 1) & mask;
            let id = self.places[next].0;
            if id == 0 {
                return;
            }
            // Distance from where it should be, against the distance from the hole.
            let wanted = home(id, mask);
            if (next.wrapping_sub(wanted) & mask) >= (next.wrapping_sub(hole) & mask) {
                self.displaced -= usize::from(hole == wanted);
                self.places.swap(hole, next);
                hole = next;
            }
        }
    }

    /// All open streams, in no order.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut S)> {
        self.places
            .iter_mut()
            .filter(|(id, _)| *id != 0)
            .map(|(id, stream)| (*id, stream))
    }

    /// Identifiers of the open streams to which `wanted` applies, in ascending order. Allocates.
    pub(super) fn ids(&mut self, wanted: impl Fn(u32, &S) -> bool) -> Vec<u32> {
        let mut ids: Vec<u32> = self
            .iter_mut()
            .filter(|(id, stream)| wanted(*id, stream))
            .map(|(id, _)| id)
            .collect();
        ids.sort_unstable();
        ids
    }

    #[inline]
    fn find(&self, id: u32) -> Option<usize> {
        let mask = self.places.len().checked_sub(1)?;
        let mut place = home(id, mask);
        loop {
            match self.places[place].0 {
                found if found == id => return (id != 0).then_some(place),
                0 => return None,
                _ => place = (place + 1) & mask,
            }
        }
    }

    #[inline]
    fn place(&mut self, id: u32, stream: S) {
        let mask = self.places.len() - 1;
        let mut place = home(id, mask);
        while self.places[place].0 != 0 {
            place = (place + 1) & mask;
        }
        self.displaced += usize::from(place != home(id, mask));
        self.places[place] = (id, stream);
    }

    #[cold]
    fn grow(&mut self) {
        let places = (self.places.len() * 2).max(PLACES_MIN);
        let mut new = Vec::new();
        new.reserve_exact(places);
        new.resize_with(places, Default::default);
        self.displaced = 0;
        for (id, stream) in std::mem::replace(&mut self.places, new) {
            if id != 0 {
                self.place(id, stream);
            }
        }
    }
}

/// Where a stream belongs: identifiers of one side are all odd.
fn home(id: u32, mask: usize) -> usize {
    (id >> 1) as usize & mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn holds_what_a_map_would_hold(
            steps in prop::collection::vec((0_u32..40, any::<bool>()), 0..300),
        ) {
            let (mut streams, mut map) = (Streams::default(), BTreeMap::new());
            for (step, (number, inserts)) in steps.into_iter().enumerate() {
                let id = number * 2 + 1;
                if inserts && !streams.contains(id) {
                    streams.insert(id, step);
                    map.insert(id, step);
                } else {
                    prop_assert_eq!(streams.remove(id), map.remove(&id));
                }
                prop_assert_eq!(streams.len(), map.len());
                let mask = streams.places.len().wrapping_sub(1);
                let places = streams.places.iter().enumerate();
                let open = places.filter(|(_, (id, _))| *id != 0);
                let displaced = open.filter(|(place, (id, _))| home(*id, mask) != *place);
                prop_assert_eq!(displaced.count(), streams.displaced);
                for (id, step) in &map {
                    prop_assert_eq!(streams.get_mut(*id).copied(), Some(*step));
                }
            }
            prop_assert_eq!(streams.ids(|_, _| true), map.into_keys().collect::<Vec<_>>());
        }
    }
}
