//! The connections of an endpoint, found by keys that are never used twice.

/// A connection of one endpoint; never that of another connection again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionKey {
    /// Position in the table; reused after the connection is gone.
    pub index: u32,
    /// Counts the connections that have had the position.
    pub generation: u32,
}

/// Connections by key. An entry is boxed: quinn-proto's state machine takes 6 KB inline.
pub(super) struct Slab<T> {
    entries: Vec<Entry<T>>,
    /// Positions without a connection; the one freed last is taken first.
    free: Vec<u32>,
}

struct Entry<T> {
    generation: u32,
    value: Option<Box<T>>,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Self {
        Slab {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }

    /// The index that the next connection gets.
    pub(super) fn vacant_index(&self) -> u32 {
        self.free
            .last()
            .copied()
            .unwrap_or(self.entries.len() as u32)
    }

    pub(super) fn insert(&mut self, value: T) -> ConnectionKey {
        let index = self.vacant_index();
        if self.free.pop().is_none() {
            self.entries.push(Entry {
                generation: 0,
                value: None,
            });
        }
        let entry = &mut self.entries[index as usize];
        entry.generation = entry.generation.wrapping_add(1);
        entry.value = Some(Box::new(value));
        ConnectionKey {
            index,
            generation: entry.generation,
        }
    }

    pub(super) fn get(&self, key: ConnectionKey) -> Option<&T> {
        let entry = self.entries.get(key.index as usize)?;
        let value = entry.value.as_deref();
        value.filter(|_| entry.generation == key.generation)
    }

    pub(super) fn get_mut(&mut self, key: ConnectionKey) -> Option<&mut T> {
        let entry = self.entries.get_mut(key.index as usize)?;
        let fits = entry.generation == key.generation;
        entry.value.as_deref_mut().filter(|_| fits)
    }

    pub(super) fn remove(&mut self, key: ConnectionKey) -> Option<Box<T>> {
        let entry = self.entries.get_mut(key.index as usize)?;
        if entry.generation != key.generation {
            return None;
        }
        let value = entry.value.take()?;
        self.free.push(key.index);
        Some(value)
    }

    /// Every connection with its key.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ConnectionKey, &T)> {
        let entries = self.entries.iter().zip(0..);
        entries.filter_map(|(entry, index)| {
            let generation = entry.generation;
            let key = ConnectionKey { index, generation };
            Some((key, entry.value.as_deref()?))
        })
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_of_a_connection_that_is_gone_finds_nothing() {
        let mut slab = Slab::new();
        let kept = slab.insert("kept");
        let first = slab.insert("first");
        assert_eq!((slab.get(first), slab.len()), (Some(&"first"), 2));
        assert_eq!(slab.remove(first).as_deref(), Some(&"first"));
        assert_eq!(slab.vacant_index(), first.index);
        let second = slab.insert("second");
        assert_eq!(second.index, first.index);
        assert_eq!((slab.get(first), slab.get(second)), (None, Some(&"second")));
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.remove(second).as_deref(), Some(&"second"));
        assert_eq!(slab.remove(second), None);
        assert_eq!((slab.get(kept), slab.len()), (Some(&"kept"), 1));
    }
}
