//! Agents that a run was to have, and began without (`--min-agents`).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::notation::{count, counted, first_few};

/// An agent that had not come when the run began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AbsentAgent {
    /// Its index, from 0: its `--index`, or that of its pod.
    pub index: u32,
    /// Why, where Kubernetes knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What they mean for the reader of a result of `present` agents; none if all came.
pub fn warning(absent: &[AbsentAgent], present: u64) -> Option<String> {
    if absent.is_empty() {
        return None;
    }
    let mut by_cause: BTreeMap<Option<&str>, Vec<u32>> = BTreeMap::new();
    for agent in absent {
        let alike = by_cause.entry(agent.why.as_deref()).or_default();
        alike.push(agent.index);
    }
    let missing = by_cause.iter().map(|(why, indices)| match why {
        Some(why) => format!("{} ({why})", first_few(indices)),
        None => first_few(indices),
    });
    let missing: Vec<String> = missing.collect();
    Some(format!(
        "{} of {} took part, and the whole load was divided among them (--min-agents); absent at \
         the start, by index: {}",
        count(present),
        counted(present + absent.len() as u64, "agent"),
        missing.join("; ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_agents_are_listed_by_their_cause() {
        assert_eq!(warning(&[], 3), None);
        let agent = |index: u32, why: Option<&str>| AbsentAgent {
            index,
            why: why.map(str::to_owned),
        };
        let absent = [agent(0, None), agent(4, None)];
        let text = warning(&absent, 3).unwrap();
        assert!(text.starts_with("3 of 5 agents took part"), "{text}");
        assert!(text.ends_with("by index: 0, 4"), "{text}");
        let mut absent: Vec<_> = (10..20).map(|it| agent(it, Some("pod pending"))).collect();
        absent.push(agent(3, Some("no pod")));
        let text = warning(&absent, 1).unwrap();
        let listed = "3 (no pod); 10, 11, 12, 13, 14, 15, 16, 17 and 2 more (pod pending)";
        assert!(text.ends_with(listed), "{text}");
    }
}
