//! Requested TLS settings: the share of connections that resume, and their names in the record.

use std::str::FromStr;

use proto::Transport;
use proto::tls::{CipherSuite, ClientTlsOptions, Group, TlsVersions};

/// The share of connections that resume their client's session, as far as it has one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Resume(f64);

impl Resume {
    /// Every handshake is a full one.
    pub const NEVER: Resume = Resume(0.0);
    /// Each connection resumes what the one before it left.
    pub const ALWAYS: Resume = Resume(1.0);

    /// That share of the connections; what is no share from 0 to 1 is the nearest one.
    pub fn of_share(share: f64) -> Resume {
        Resume(share.clamp(0.0, 1.0))
    }

    /// The share, 0 to 1.
    pub fn share(self) -> f64 {
        self.0
    }

    /// True if no connection resumes.
    pub fn is_never(self) -> bool {
        self.0 == 0.0
    }

    /// Decides for one connection by a number that the caller drew, equally likely from all.
    pub fn decide(self, draw: u64) -> bool {
        // 53 bits, as many as a double holds exactly: below 1, so that 1 is always.
        ((draw >> 11) as f64) / ((1_u64 << 53) as f64) < self.0
    }
}

impl FromStr for Resume {
    type Err = String;

    /// Reads `never`, `always`, or a share from 0 to 1.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "never" => Ok(Resume::NEVER),
            "always" => Ok(Resume::ALWAYS),
            _ => text
                .parse()
                .ok()
                .filter(|share| (0.0..=1.0).contains(share))
                .map(Resume)
                .ok_or_else(|| format!("`{text}` is not a share")),
        }
    }
}

/// The requested TLS settings, with the registries' names. Lists contain the defaults where nothing
/// was set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TlsAsked {
    /// The versions offered: `TLS 1.2`, `TLS 1.3`.
    pub versions: Vec<String>,
    /// The cipher suites offered, preferred first, as far as a version that is offered has them.
    pub cipher_suites: Vec<String>,
    /// The key exchange groups offered, preferred first, as far as a version has them.
    pub groups: Vec<String>,
    /// The ALPN protocols offered, preferred first; empty for no ALPN.
    pub alpn: Vec<String>,
    /// The name sent (SNI); none if none was, as with addresses.
    pub sni: Option<String>,
    /// The share of connections that were to resume.
    pub resume: Resume,
    /// Queries were to be sent as early data where a session allowed it.
    pub early_data: bool,
    /// The clients had a certificate.
    pub client_certificate: bool,
    /// SPKI pins, in base64.
    pub pins: Vec<String>,
    /// The certificate was verified by authorities.
    pub verified_by_authorities: bool,
    /// Secrets were written to a file.
    pub key_log: bool,
    /// rustls did the records to the end.
    pub stock_records: bool,
}

impl TlsAsked {
    /// The settings in `options`, for a server called `name`.
    pub fn of(options: &ClientTlsOptions, name: &str, resume: Resume) -> TlsAsked {
        let versions = options.versions;
        let has = |is_tls13: bool| match versions {
            TlsVersions::All => true,
            TlsVersions::Tls12 => !is_tls13,
            TlsVersions::Tls13 => is_tls13,
        };
        let offered = [("TLS 1.2", false), ("TLS 1.3", true)];
        let suites = options
            .cipher_suites
            .iter()
            .filter(|suite| has(suite.is_tls13()));
        let groups = options.groups.iter();
        let groups = groups.filter(|group| has(true) || group.is_for_tls12());
        let is_address = name.parse::<std::net::IpAddr>().is_ok();
        TlsAsked {
            versions: offered
                .iter()
                .filter(|(_, is_tls13)| has(*is_tls13))
                .map(|(version, _)| (*version).to_owned())
                .collect(),
            cipher_suites: suites.map(CipherSuite::to_string).collect(),
            groups: groups.map(Group::to_string).collect(),
            alpn: options
                .alpn
                .iter()
                .map(|name| name.escape_ascii().to_string())
                .collect(),
            sni: (options.sni && !is_address).then(|| name.to_owned()),
            resume,
            early_data: options.early_data,
            client_certificate: options.certificate.is_some(),
            pins: options.pins.iter().map(ToString::to_string).collect(),
            verified_by_authorities: options.verify,
            key_log: options.key_log.is_some(),
            stock_records: options.stock_records,
        }
    }
}

/// The ALPN protocols that a client offers by default: those of HTTP and QUIC, which need one; none
/// for DoT (RFC 7858 requires none).
pub fn default_alpn(transport: Transport) -> Vec<Vec<u8>> {
    let name = transport.alpn().filter(|_| transport != Transport::Dot);
    name.iter().map(|name| name.as_bytes().to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_and_decide_as_often_as_they_say() {
        for (text, share) in [("never", 0.0), ("always", 1.0), ("0.25", 0.25), ("1", 1.0)] {
            let resume: Resume = text.parse().unwrap();
            assert_eq!(resume.share(), share);
            let draws = (0..1_000_u64).map(|index| index * (u64::MAX / 999));
            let resumed = draws.filter(|draw| resume.decide(*draw)).count();
            assert_eq!(resumed, (share * 1_000.0) as usize, "{text}");
        }
        for wrong in ["", "sometimes", "-0.1", "1.1", "NaN", "inf"] {
            assert!(wrong.parse::<Resume>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn record_says_what_is_offered_also_where_it_is_the_default() {
        let mut options = ClientTlsOptions::default();
        let asked = TlsAsked::of(&options, "dns.example", Resume::NEVER);
        assert_eq!(asked.versions, ["TLS 1.2", "TLS 1.3"]);
        assert_eq!(asked.cipher_suites.len(), 9);
        assert_eq!(asked.groups[0], "x25519");
        assert_eq!(asked.sni.as_deref(), Some("dns.example"));

        options.versions = TlsVersions::Tls12;
        let asked = TlsAsked::of(&options, "192.0.2.1", Resume::NEVER);
        assert_eq!((asked.versions.len(), asked.cipher_suites.len()), (1, 6));
        assert_eq!((asked.groups.len(), asked.sni), (3, None));
        options.sni = false;
        assert_eq!(
            TlsAsked::of(&options, "dns.example", Resume::NEVER).sni,
            None
        );
    }
}
