//! Times as whole nanoseconds, in which records and messages between processes have them.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Whole nanoseconds; 584 years are the most.
pub(crate) fn of(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    of(*time).serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_nanos)
}

/// The same for a time that may be missing.
pub(crate) mod option {
    use super::{Deserialize, Deserializer, Duration, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(super::of).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        let time = Option::<u64>::deserialize(from)?;
        Ok(time.map(Duration::from_nanos))
    }
}

/// The same for a list of times.
pub(crate) mod list {
    use super::{Deserialize, Deserializer, Duration, Serializer};

    pub(crate) fn serialize<S: Serializer>(times: &[Duration], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(times.iter().copied().map(super::of))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<Duration>, D::Error> {
        let times = Vec::<u64>::deserialize(from)?;
        Ok(times.into_iter().map(Duration::from_nanos).collect())
    }
}
