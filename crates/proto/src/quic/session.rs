//! TLS within QUIC (RFC 9001): rustls behind quinn-proto's interface.
//!
//! quinn-proto has such an adapter, but it does not expose whether a handshake resumed a session,
//! nor why a certificate was refused.

use crate::tls::{HandshakeKind, Negotiated, TlsFailure, quic_initial_suite};
use aws_lc_rs::aead;
use quinn_proto::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::pki_types::ServerName;
use rustls::quic::{self, KeyChange, Secrets, Version};
use std::any::Any;
use std::sync::Arc;

/// Prefix of the reason of a failure caused by the peer's certificate. The alert does not identify
/// it: a bad signature on a certificate is a decrypt_error.
pub(super) const CERTIFICATE_REASON: &str = "certificate: ";
pub(super) const PIN_REASON: &str = "pin: ";

/// Properties of a complete handshake, passed through quinn-proto.
pub(super) struct HandshakeFacts {
    pub(super) kind: HandshakeKind,
    pub(super) negotiated: Option<Negotiated>,
}

/// One client connection's TLS.
pub(super) struct ClientCrypto {
    pub(super) config: Arc<rustls::ClientConfig>,
    /// The protocol's own ALPN, offered if the configuration has none to offer.
    pub(super) alpn: &'static [u8],
}

impl crypto::ClientConfig for ClientCrypto {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        let refused = |_| ConnectError::InvalidServerName(server_name.to_owned());
        let name = ServerName::try_from(server_name.to_owned()).map_err(refused)?;
        let mut alpn = self.config.alpn_protocols.clone();
        if alpn.is_empty() {
            alpn.push(self.alpn.to_vec());
        }
        let connection = quic::ClientConnection::new_with_alpn(
            Arc::clone(&self.config),
            Version::V1,
            name,
            encoded(params),
            alpn,
        );
        // The one error left is a configuration without TLS 1.3.
        let connection = connection.map_err(|_| ConnectError::UnsupportedVersion)?;
        Ok(Box::new(Session::new(quic::Connection::Client(connection))))
    }
}

/// A server's TLS: configuration with the one ALPN of its protocol.
pub(super) struct ServerCrypto {
    config: Arc<rustls::ServerConfig>,
}

impl ServerCrypto {
    /// # Errors
    /// rustls' reason why the configuration cannot serve QUIC: it has no TLS 1.3, or a limit to
    /// early data (RFC 9001, section 4.6.1 leaves that to flow control).
    pub(super) fn new(config: &rustls::ServerConfig, alpn: &[u8]) -> Result<Self, String> {
        let mut config = config.clone();
        config.alpn_protocols = vec![alpn.to_vec()];
        let config = Arc::new(config);
        // A configuration refused here would panic at the first connection.
        quic::ServerConnection::new(Arc::clone(&config), Version::V1, Vec::new())
            .map_err(|error| error.to_string())?;
        Ok(ServerCrypto { config })
    }
}

impl crypto::ServerConfig for ServerCrypto {
    fn initial_keys(
        &self,
        _version: u32,
        dst_cid: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        let keys = quic_initial_suite().keys(dst_cid, rustls::Side::Server, Version::V1);
        Ok(boxed(keys))
    }

    fn retry_tag(&self, _version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        retry_tag(orig_dst_cid, &[packet])
    }

    fn start_session(
        self: Arc<Self>,
        _version: u32,
        params: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        let config = Arc::clone(&self.config);
        let connection = quic::ServerConnection::new(config, Version::V1, encoded(params))
            .expect("`ServerCrypto::new` has tried this configuration");
        Box::new(Session::new(quic::Connection::Server(connection)))
    }
}

fn encoded(params: &TransportParameters) -> Vec<u8> {
    let mut octets = Vec::new();
    params.write(&mut octets);
    octets
}

/// One connection's TLS.
struct Session {
    connection: quic::Connection,
    /// Makes the keys of key updates; `None` until the handshake is complete.
    next_secrets: Option<Secrets>,
    /// quinn-proto has been told that ALPN is settled.
    announced: bool,
}

impl Session {
    fn new(connection: quic::Connection) -> Self {
        Session {
            connection,
            next_secrets: None,
            announced: false,
        }
    }
}

impl crypto::Session for Session {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        let side = match side {
            Side::Client => rustls::Side::Client,
            Side::Server => rustls::Side::Server,
        };
        boxed(quic_initial_suite().keys(dst_cid, side, Version::V1))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(HandshakeFacts {
            kind: self.connection.handshake_kind()?.into(),
            negotiated: Negotiated::of(&self.connection),
        }))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.connection.zero_rtt_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        match &self.connection {
            quic::Connection::Client(client) => Some(client.is_early_data_accepted()),
            quic::Connection::Server(_) => None,
        }
    }

    fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        if let Err(error) = self.connection.read_hs(buf) {
            return Err(self.failure(error));
        }
        let settled = self.connection.alpn_protocol().is_some() || !self.is_handshaking();
        let first = settled && !self.announced;
        self.announced |= settled;
        Ok(first)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(mut octets) = self.connection.quic_transport_parameters() else {
            return Ok(None);
        };
        let side = match self.connection {
            quic::Connection::Client(_) => Side::Client,
            quic::Connection::Server(_) => Side::Server,
        };
        Ok(Some(TransportParameters::read(side, &mut octets)?))
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        match self.connection.write_hs(buf)? {
            KeyChange::Handshake { keys } => Some(boxed(keys)),
            KeyChange::OneRtt { keys, next } => {
                self.next_secrets = Some(next);
                Some(boxed(keys))
            }
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.next_secrets.as_mut()?.next_packet_keys();
        Some(KeyPair {
            local: Box::new(keys.local),
            remote: Box::new(keys.remote),
        })
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let Some((token, tag)) = payload.split_last_chunk::<16>() else {
            return false;
        };
        retry_tag(orig_dst_cid, &[header, token]) == *tag
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        let exported = self
            .connection
            .export_keying_material(output, label, Some(context));
        exported.map(drop).map_err(|_| ExportKeyingMaterialError)
    }
}

impl Session {
    /// The error that goes to the peer as an alert, with our own words as the reason.
    fn failure(&self, error: rustls::Error) -> TransportError {
        let alert = self.connection.alert().map(u8::from);
        let reason = match TlsFailure::from(error) {
            TlsFailure::Certificate(fault, reason) => {
                format!("{CERTIFICATE_REASON}{}: {reason}", fault.name())
            }
            TlsFailure::Pin(reason) => format!("{PIN_REASON}{reason}"),
            TlsFailure::Alpn(reason) | TlsFailure::Protocol(reason) => reason,
            failure @ TlsFailure::Alert(_) => failure.to_string(),
        };
        TransportError {
            // RFC 9001, section 4.8: without an alert to fit, a generic one (80, internal_error).
            code: TransportErrorCode::crypto(alert.unwrap_or(80)),
            frame: None,
            reason,
        }
    }
}

fn boxed(keys: quic::Keys) -> Keys {
    Keys {
        header: KeyPair {
            local: Box::new(keys.local.header),
            remote: Box::new(keys.remote.header),
        },
        packet: KeyPair {
            local: Box::new(keys.local.packet),
            remote: Box::new(keys.remote.packet),
        },
    }
}

/// The key and nonce of the Retry Integrity Tag, the same for everyone (RFC 9001, section 5.8).
const RETRY_KEY: [u8; 16] = 0xbe0c_690b_9f66_575a_1d76_6b54_e368_c84e_u128.to_be_bytes();
const RETRY_NONCE: [u8; 12] = [
    0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb,
];

/// The Retry Integrity Tag of a Retry packet in `parts`, without its tag.
fn retry_tag(orig_dst_cid: &[u8], parts: &[&[u8]]) -> [u8; 16] {
    let mut pseudo_packet = vec![orig_dst_cid.len() as u8];
    pseudo_packet.extend_from_slice(orig_dst_cid);
    parts
        .iter()
        .for_each(|part| pseudo_packet.extend_from_slice(part));
    let key = aead::UnboundKey::new(&aead::AES_128_GCM, &RETRY_KEY)
        .expect("AES-128 takes a key of 16 bytes");
    let sealed = aead::LessSafeKey::new(key).seal_in_place_separate_tag(
        aead::Nonce::assume_unique_for_key(RETRY_NONCE),
        aead::Aad::from(pseudo_packet),
        &mut [],
    );
    let mut tag = [0; 16];
    tag.copy_from_slice(sealed.expect("a short text can be sealed").as_ref());
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc9001_a4_retry_integrity_tag() {
        let packet = [
            0xff, 0x00, 0x00, 0x00, 0x01, 0x00, 0x08, 0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62,
            0xb5, 0x74, 0x6f, 0x6b, 0x65, 0x6e,
        ];
        let orig_dst_cid = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
        assert_eq!(
            retry_tag(&orig_dst_cid, &[&packet]),
            0x04a2_65ba_2eff_4d82_9058_fb3f_0f24_96ba_u128.to_be_bytes()
        );
    }
}
