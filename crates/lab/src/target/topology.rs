//! The network between the generator and a server.

use std::fmt;

use crate::line::Shape;
use crate::run::RunError;

/// The network that queries travel over.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Topology {
    /// The loopback interface, which both share.
    #[default]
    Loopback,
    /// Two network namespaces, joined by a pair of virtual network cards.
    Veth,
    /// Two network namespaces, joined by a delay line; with its notation.
    Line(Box<Shape>, String),
    /// A cluster: the server is in a pod, behind a Service.
    Kubernetes,
}

impl Topology {
    /// Reads `loopback`, `veth`, `kubernetes`, or `line:10ms,0.1%`, with more of the line's values
    /// by name.
    ///
    /// # Errors
    /// It is none of them; with the cure.
    pub fn parse(text: &str) -> Result<Topology, RunError> {
        match text.split_once(':') {
            None if text == "loopback" => Ok(Topology::Loopback),
            None if text == "veth" => Ok(Topology::Veth),
            None if text == "kubernetes" => Ok(Topology::Kubernetes),
            Some(("line", shape)) => {
                let shape = Box::new(Shape::parse(shape)?);
                Ok(Topology::Line(shape, text.to_owned()))
            }
            _ => Err(RunError::new(
                format!("there is no topology `{text}`"),
                "write loopback, veth, kubernetes, or line:DELAY,LOSS such as line:10ms,0.1%",
            )),
        }
    }

    /// The topology of start `number`, from 1: each start has its own random losses, or one line's
    /// losses would be repeated in all of them.
    pub fn of_start(&self, number: u32) -> Topology {
        let mut topology = self.clone();
        if let Topology::Line(shape, _) = &mut topology {
            shape.seed = shape.seed.wrapping_add(u64::from(number.saturating_sub(1)));
        }
        topology
    }

    /// True if it needs network namespaces, and rights for them.
    pub fn needs_network(&self) -> bool {
        matches!(self, Topology::Veth | Topology::Line(..))
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Topology::Loopback => f.write_str("loopback"),
            Topology::Veth => f.write_str("veth"),
            Topology::Line(_, written) => f.write_str(written),
            Topology::Kubernetes => f.write_str("kubernetes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_start_has_chances_of_its_own() {
        let seed = |number: u32| match Topology::parse("line:1ms,seed=7").unwrap().of_start(number)
        {
            Topology::Line(shape, _) => shape.seed,
            other => panic!("{other}"),
        };
        assert_eq!([seed(1), seed(2), seed(5)], [7, 8, 11]);
        assert_eq!(Topology::Veth.of_start(3), Topology::Veth);
    }

    #[test]
    fn a_topology_is_read_and_written_the_same() {
        for text in ["loopback", "kubernetes", "veth", "line:10ms,0.1%,seed=3"] {
            let topology = Topology::parse(text).unwrap();
            assert_eq!(topology.to_string(), text);
            let is_made = text.starts_with("veth") || text.starts_with("line");
            assert_eq!(topology.needs_network(), is_made);
        }
        for text in ["", "vethh", "veth:1", "line", "kubernetes:1", "line:x"] {
            let error = Topology::parse(text).unwrap_err();
            assert!(error.hint.is_some(), "{text}");
        }
    }
}
