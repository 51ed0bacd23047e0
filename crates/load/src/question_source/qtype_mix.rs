//! A mix of QTYPEs by weight: `A=60,AAAA=30,HTTPS=10`.

use std::str::FromStr;

use proto::rr;

use crate::plan_error::PlanError;

const HINT: &str = "write QTYPEs with their weights, such as A=60,AAAA=30,HTTPS=10";

/// QTYPEs with their shares, at least one and at most 255.
#[derive(Clone, Debug, PartialEq)]
pub struct QtypeMix {
    /// QTYPE and share; the shares add up to 1.
    shares: Vec<(u16, f64)>,
    /// The first draw that is for the next QTYPE; none for the last.
    limits: Vec<u64>,
}

impl QtypeMix {
    /// QTYPEs, each once, with weights above 0; only their ratios matter.
    ///
    /// # Errors
    /// There are none, or more than 255, or their weights add up to too much.
    pub fn new(weights: Vec<(u16, f64)>) -> Result<Self, PlanError> {
        let fault = |what: String| PlanError::new("qtypes", what, HINT);
        if weights.is_empty() {
            return Err(fault("there are no QTYPEs".to_owned()));
        }
        if weights.len() > usize::from(u8::MAX) {
            return Err(fault(format!("{} QTYPEs are too many", weights.len())));
        }
        let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
        if !sum.is_finite() {
            return Err(fault("the weights add up to too much".to_owned()));
        }
        let shares: Vec<(u16, f64)> = weights
            .iter()
            .map(|(qtype, weight)| (*qtype, weight / sum))
            .collect();
        let mut passed = 0.0;
        let limits = shares[..shares.len() - 1].iter().map(|(_, share)| {
            passed += share;
            // 2^64; the conversion ends at the highest number.
            (passed * 18_446_744_073_709_551_616.0) as u64
        });
        let limits = limits.collect();
        Ok(QtypeMix { shares, limits })
    }

    /// QTYPEs in the order given and their shares, which add up to 1.
    pub fn shares(&self) -> &[(u16, f64)] {
        &self.shares
    }

    /// The number, from 1, of the QTYPE that 64 random bits select.
    #[inline]
    pub(crate) fn pick(&self, draw: u64) -> u8 {
        let passed = self.limits.iter().take_while(|limit| draw >= **limit);
        // There are at most 254 limits.
        passed.count() as u8 + 1
    }

    /// The QTYPE with this number; `None` for 0, which stands for the template's own.
    #[inline]
    pub(crate) fn qtype(&self, number: u8) -> Option<u16> {
        let index = usize::from(number).checked_sub(1)?;
        self.shares.get(index).map(|(qtype, _)| *qtype)
    }
}

impl FromStr for QtypeMix {
    type Err = PlanError;

    /// Weights are numbers above 0; only their ratios matter.
    fn from_str(text: &str) -> Result<Self, PlanError> {
        let fault = |what: String| PlanError::new("qtypes", what, HINT);
        let mut weights: Vec<(u16, f64)> = Vec::new();
        for item in text.split(',') {
            let (name, weight) = item
                .trim()
                .split_once('=')
                .ok_or_else(|| fault(format!("`{item}` is not a QTYPE with a weight")))?;
            let qtype =
                rr::type_from_text(name).ok_or_else(|| fault(format!("unknown QTYPE `{name}`")))?;
            let weight: f64 = weight
                .parse()
                .ok()
                .filter(|weight: &f64| weight.is_finite() && *weight > 0.0)
                .ok_or_else(|| fault(format!("`{weight}` is not a weight above 0")))?;
            if weights.iter().any(|(other, _)| *other == qtype) {
                return Err(fault(format!("{name} is given twice")));
            }
            weights.push((qtype, weight));
        }
        QtypeMix::new(weights)
    }
}
