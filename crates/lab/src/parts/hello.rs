//! What a part on another host says first, so that only equal programs run together.

use serde::{Deserialize, Serialize};

/// Version of what parts and their parent say to each other.
const PROTOCOL: u32 = 1;

/// Who a part is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    protocol: u32,
    /// Of the record.
    schema: String,
    /// Of the program.
    version: String,
    /// SHA-256 of the program's file.
    binary: String,
    /// CPUs that it may use.
    pub cpus: u32,
    /// Files that it may have open.
    pub open_files_max: u64,
}

impl Hello {
    /// This process, whose program has that hash.
    pub fn of_this(binary: String) -> Hello {
        Hello {
            protocol: PROTOCOL,
            schema: measure::record::SCHEMA_VERSION.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            binary,
            cpus: u32::try_from(driver::cpu::allowed().len()).unwrap_or(1),
            open_files_max: driver::cpu::open_files_max(),
        }
    }

    /// Refuses a part that is not the same program as this process.
    ///
    /// # Errors
    /// What is different.
    pub fn check(&self, own: &Hello) -> Result<(), String> {
        let differ = |what: &str, theirs: &str, own: &str| {
            Err(format!("its {what} is {theirs}, and the one here is {own}"))
        };
        if self.version != own.version {
            return differ("throng", &self.version, &own.version);
        }
        if self.protocol != own.protocol {
            let (theirs, own) = (self.protocol.to_string(), own.protocol.to_string());
            return differ("protocol", &theirs, &own);
        }
        if self.schema != own.schema {
            return differ("schema version", &self.schema, &own.schema);
        }
        match self.binary == own.binary {
            true => Ok(()),
            false => differ("program (SHA-256)", &self.binary, &own.binary),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_program_is_let_in() {
        let own = Hello::of_this("aa".to_owned());
        assert_eq!(own.check(&own), Ok(()));
        let others = [
            Hello {
                version: "0.0.9".to_owned(),
                ..own.clone()
            },
            Hello {
                protocol: 0,
                ..own.clone()
            },
            Hello {
                schema: "1".to_owned(),
                ..own.clone()
            },
            Hello {
                binary: "bb".to_owned(),
                ..own.clone()
            },
        ];
        for (other, told) in others.iter().zip(["0.0.9", "is 0,", "is 1,", "is bb,"]) {
            let error = other.check(&own).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
        // Hosts may differ.
        let larger = Hello {
            cpus: own.cpus + 1,
            ..own.clone()
        };
        assert_eq!(larger.check(&own), Ok(()));
    }
}
